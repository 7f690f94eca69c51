"""A daemon that always gives the same answers, for clients in other languages."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import status_pb2
from grpc_status import rpc_status

from spotwright.v1 import (
    catalog_pb2,
    job_pb2,
    job_pb2_grpc,
    planner_pb2,
    planner_pb2_grpc,
    telemetry_pb2,
    telemetry_pb2_grpc,
)


def planned() -> planner_pb2.CreatePlanResponse:
    """Return a plan of two pools."""
    fleet = planner_pb2.Fleet(nodes=[_group("worker"), _group("ps")])
    prediction = planner_pb2.Prediction(
        fleet=fleet,
        duration_s=planner_pb2.Interval(low=36_000.1, mid=39_600.25, high=43_200.0),
        cost_usd=planner_pb2.Interval(low=9.0, mid=10.0, high=11.0),
        bottleneck="ps_service",
    )
    plan = planner_pb2.Plan(
        plan_id="plan-1",
        job_name="resnet50",
        status=planner_pb2.PLAN_STATUS_OPTIMAL,
        objective=planner_pb2.OBJECTIVE_COST,
        prediction=prediction,
        cost_usd=10.0,
        lower_bound_usd=9.995,
        deadline_probability=0.97,
        why=["the deadline binds"],
    )
    return planner_pb2.CreatePlanResponse(plan=plan)


def infeasible() -> planner_pb2.CreatePlanResponse:
    """Return why there is no plan, and two changes that help."""
    changes = [
        planner_pb2.SmallestChange(
            limit="goal.deadline",
            now=3_600,
            needed=7_200,
            proved=True,
            text="goal.deadline from 1 h to 2 h",
        ),
        planner_pb2.SmallestChange(
            limit="limits.max_nodes", now=float("inf"), needed=8, text="limits.max_nodes to 8"
        ),
    ]
    return planner_pb2.CreatePlanResponse(
        infeasible=planner_pb2.Infeasible(
            job_name="resnet50",
            objective=planner_pb2.OBJECTIVE_COST,
            proved=True,
            limits=["the fastest fleet needs 2 h, the deadline is 1 h"],
            changes=changes,
        )
    )


@dataclass
class CannedDaemon(
    planner_pb2_grpc.PlannerServiceServicer,
    job_pb2_grpc.JobServiceServicer,
    telemetry_pb2_grpc.TelemetryServiceServicer,
):
    """Answers every plan the same way, and remembers who asked for what."""

    answer: planner_pb2.CreatePlanResponse | status_pb2.Status = field(default_factory=planned)
    requests: list[planner_pb2.CreatePlanRequest] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    def CreatePlan(  # noqa: N802
        self, request: planner_pb2.CreatePlanRequest, context: grpc.ServicerContext
    ) -> planner_pb2.CreatePlanResponse:
        self.requests.append(request)
        metadata = dict(context.invocation_metadata())
        self.authorizations.append(str(metadata.get("authorization", "")))
        if isinstance(self.answer, status_pb2.Status):
            context.abort_with_status(rpc_status.to_status(self.answer))
        assert isinstance(self.answer, planner_pb2.CreatePlanResponse)
        return self.answer

    def WatchAgents(  # noqa: N802
        self, request: telemetry_pb2.WatchAgentsRequest, context: grpc.ServicerContext
    ) -> Iterator[telemetry_pb2.WatchAgentsResponse]:
        gpus = [telemetry_pb2.GpuSample(gpu_index=i, utilization_fraction=u) for i, u in _BUSY]
        agent = telemetry_pb2.Agent(
            facts=telemetry_pb2.AgentFacts(agent_id="gpu-7", instance_type="g5.xlarge"),
            connected=True,
            latest_sample=telemetry_pb2.HostSample(gpus=gpus),
            latest_step=telemetry_pb2.StepSample(step_s=0.25),
            notice=telemetry_pb2.Notice(detail="terminate"),
        )
        yield telemetry_pb2.WatchAgentsResponse(agents=[agent])

    def WatchJob(  # noqa: N802
        self, request: job_pb2.WatchJobRequest, context: grpc.ServicerContext
    ) -> Iterator[job_pb2.WatchJobResponse]:
        running = job_pb2.Job(
            job_id=request.job_id, state=job_pb2.JOB_STATE_RUNNING, progress_fraction=0.5
        )
        event = job_pb2.Event(sequence=3, kind="interruption-notice", text="gpu-7 goes in 2 min")
        yield job_pb2.WatchJobResponse(job=running)
        yield job_pb2.WatchJobResponse(event=event)


_BUSY = ((0, 0.5), (1, 1.0))


@contextmanager
def serving(daemon: CannedDaemon, credentials: Any = None) -> Iterator[str]:
    """Serve on loopback and return the address."""
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        planner_pb2_grpc.add_PlannerServiceServicer_to_server(daemon, server)
        job_pb2_grpc.add_JobServiceServicer_to_server(daemon, server)
        telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(daemon, server)
        if credentials is None:
            port = server.add_insecure_port("127.0.0.1:0")
        else:
            port = server.add_secure_port("127.0.0.1:0", credentials)
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()


def _group(role: str) -> planner_pb2.NodeGroup:
    worker = role == "worker"
    name = "g5.xlarge" if worker else "m5.xlarge"
    offer = catalog_pb2.Offer(
        instance_type=name,
        zone="use1-az4",
        market=catalog_pb2.MARKET_SPOT if worker else catalog_pb2.MARKET_ON_DEMAND,
        price_usd_per_hour=0.4021 if worker else 0.192,
    )
    return planner_pb2.NodeGroup(
        role=planner_pb2.ROLE_WORKER if worker else planner_pb2.ROLE_PS,
        instance_type=catalog_pb2.InstanceType(name=name),
        node_count=3 if worker else 1,
        offer=offer,
    )
