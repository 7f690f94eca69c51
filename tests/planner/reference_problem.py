"""The synthetic reference problem in the shape of spotDNN, with the prices of the paper."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.job import Goal, JobSpec, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.planner.problem import Problem
from tests.usecases.example_job import catalog

USD_PER_HOUR = {
    "p3.2xlarge": 1.25,
    "p2.8xlarge": 2.16,
    "g4dn.12xlarge": 1.22,
    "g4dn.4xlarge": 0.36,
    "g3.16xlarge": 1.37,
    "g3.8xlarge": 0.69,
    "g3.4xlarge": 0.34,
}
SERVER_USD_PER_HOUR = 0.192  # m5.xlarge
QUOTA = 10  # nodes of each type
INFEASIBLE = (0.6, 4000.0)
GOALS = [(0.9, 2400.0), (0.8, 2400.0), (0.7, 3600.0), (0.65, 3600.0), (0.6, 5400.0), INFEASIBLE]

_JOB_FILE = Path(__file__).parents[2] / "examples/papers/resnet110.yaml"
_PCIE_MBPS = 80_000.0  # the paper's; the catalog knows better


def reference_problem(
    loss: float, deadline_s: float, *, max_nodes: int = len(USD_PER_HOUR) * QUOTA + 1
) -> Problem:
    """Return the problem for one goal; as in the paper nothing is taken away."""
    job = _job()
    goal = Goal(target=Target(kind=TargetKind.LOSS, value=loss), deadline_s=deadline_s)
    return Problem(
        job=replace(job, goal=goal, limits=replace(job.limits, max_nodes=max_nodes)),
        worker_offers=[offer(name, price) for name, price in USD_PER_HOUR.items()],
        server_offers=[offer("m5.xlarge", SERVER_USD_PER_HOUR)],
        gpu_facts=catalog().gpu,
    )


def offer(
    name: str, usd_per_hour: float, *, zone: str = "use1-az1", market: Market = Market.ON_DEMAND
) -> Offer:
    """Return a type of the catalog at a price."""
    return Offer(
        instance_type=catalog().instance_type(name),
        region="us-east-1",
        zone=zone,
        market=market,
        price_usd_per_hour=usd_per_hour,
    )


@cache
def _job() -> JobSpec:
    job = read_job_file(_JOB_FILE).spec
    return replace(job, workload=replace(job.workload, pcie_mbps=_PCIE_MBPS))
