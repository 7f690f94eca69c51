"""A plan as the daemon keeps it: 100,000 samples in 1,000 steps within an hour."""

from spotwright.domain.job_run import PlanRecord
from spotwright.v1 import catalog_pb2, planner_pb2
from tests.usecases.example_job_run import plan_record


def plan_message(*, loss: float | None = None) -> planner_pb2.Plan:
    """Return a plan for samples, or for a loss."""
    workers = planner_pb2.NodeGroup(
        role=planner_pb2.ROLE_WORKER,
        node_count=3,
        gpus_per_node=1.0,
        offer=catalog_pb2.Offer(
            instance_type="g5.xlarge",
            zone="use1-az4",
            market=catalog_pb2.MARKET_SPOT,
            price_usd_per_hour=1.0,
        ),
    )
    server = planner_pb2.NodeGroup(
        role=planner_pb2.ROLE_PS,
        node_count=1,
        offer=catalog_pb2.Offer(
            instance_type="m5.xlarge",
            zone="use1-az4",
            market=catalog_pb2.MARKET_ON_DEMAND,
            price_usd_per_hour=0.6,
        ),
    )
    target = planner_pb2.Target(kind=planner_pb2.TARGET_KIND_SAMPLES, value=100_000.0)
    if loss is not None:
        target = planner_pb2.Target(kind=planner_pb2.TARGET_KIND_LOSS, value=loss)
    return planner_pb2.Plan(
        plan_id="plan-1",
        cost_usd=3.60,
        target=target,
        deadline_s=7200.0,
        prediction=planner_pb2.Prediction(
            fleet=planner_pb2.Fleet(nodes=[workers, server]),
            strategy=planner_pb2.STRATEGY_ASP_PS,
            groups=[
                planner_pb2.GroupPrediction(
                    group=workers,
                    step_s=3.6,
                    terms=planner_pb2.StepTerms(compute_s=2.6, network_s=1.0),
                    rates=planner_pb2.LinkRates(network_mbps=2_500.0),
                )
            ],
            steps_to_goal=1_000.0,
            weighted_batch=100.0,
            samples_per_s=27.8,
            duration_s=planner_pb2.Interval(low=3000.0, mid=3600.0, high=4200.0),
        ),
    )


def kept_plan(plan: planner_pb2.Plan | None = None) -> PlanRecord:
    """Return the record of a plan."""
    return plan_record(document=(plan or plan_message()).SerializeToString())
