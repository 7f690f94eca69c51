// Plans a job through a Spotwright daemon on loopback: ./plan JOB.yaml [HOST:PORT]
// Exit 0 planned, 1 failed, 2 bad usage or bad input, 3 no feasible fleet.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "spotwright/v1/planner.grpc.pb.h"

namespace v1 = spotwright::v1;

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  if (!file) return std::cerr << "usage: plan JOB.yaml [HOST:PORT]\n", 2;
  std::stringstream text;
  text << file.rdbuf();

  auto channel = grpc::CreateChannel(argc > 2 ? argv[2] : "127.0.0.1:7443",
                                     grpc::InsecureChannelCredentials());
  auto planner = v1::PlannerService::NewStub(channel);
  v1::CreatePlanRequest request;
  request.mutable_job()->set_text(text.str());
  request.mutable_job()->set_name(argv[1]);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));

  v1::CreatePlanResponse answer;
  const grpc::Status status = planner->CreatePlan(&context, request, &answer);
  if (!status.ok()) {
    std::cerr << "error " << status.error_code() << ": " << status.error_message() << "\n";
    return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? 2 : 1;
  }
  if (answer.has_infeasible()) {
    for (const auto& change : answer.infeasible().changes()) {
      std::cerr << "change " << change.text() << "\n";
    }
    return 3;
  }
  const v1::Plan& plan = answer.plan();
  std::cout << plan.job_name() << ": $" << plan.cost_usd() << ", no fleet costs less than $"
            << plan.lower_bound_usd() << ", " << plan.prediction().duration_s().mid() / 3600 << " h\n";
  for (const auto& group : plan.prediction().fleet().nodes()) {
    std::cout << group.node_count() << " x " << group.instance_type().name() << " "
              << group.offer().zone() << " " << v1::Market_Name(group.offer().market()) << "\n";
  }
}
