"""A job of ten hours on one or four T4 nodes in two zones, to steer."""

from dataclasses import replace
from functools import cache
from typing import Any

from spotwright.adapters.jobfile.read import parse_job
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import JobNow, Steering
from spotwright.usecases.fleet_choices import FleetChoices
from spotwright.usecases.steer_job import steer_job
from spotwright.usecases.steering_rules import SteeringRules
from tests.usecases.example_job import catalog

HOUR = 3600.0
SPOT = Pool("g4dn.2xlarge", "use1-az5", Market.SPOT)
OTHER_SPOT = Pool("g4dn.2xlarge", "use1-az6", Market.SPOT)
ON_DEMAND = Pool("g4dn.2xlarge", "use1-az5", Market.ON_DEMAND)
RULES = SteeringRules()

_TEXT = """
name: steered
workload:
  strategy: {strategy}
  model: {{parameter_size: 10 MB, flops_per_sample: 1 GFLOP}}
  batch: {{per_gpu: 100}}
  compute:
    T4: {{fixed: 0 ms, per_sample: 10 ms}}
  spot: {{checkpoint: 10 s, restart: 12 min}}
goal:
  samples: {samples}
  deadline: {deadline}
limits:
  zones: [use1-az5, use1-az6]
  types: [g4dn.2xlarge]
  max_nodes: {max_nodes}
"""


@cache
def steered_job(
    *, deadline: str = "12h", max_nodes: int = 1, strategy: str = "allreduce"
) -> JobSpec:
    """Return a job of ten hours on as many nodes as it may have."""
    text = _TEXT.format(
        strategy=strategy, samples=max_nodes * 3_600_000, deadline=deadline, max_nodes=max_nodes
    )
    return parse_job(text, path="steered.yaml").spec


def standing(**changes: Any) -> JobNow:
    """Return a job that has just begun, on one spot node."""
    return replace(
        JobNow(time_s=0.0, done_fraction=0.0, spent_usd=0.0, staying={SPOT: 1}), **changes
    )


def steered(
    now: JobNow, job: JobSpec | None = None, *, rules: SteeringRules = RULES, forced: bool = True
) -> Steering:
    """Decide what a job does next."""
    asked = job or steered_job()
    return steer_job(
        now,
        FleetChoices(asked, catalog()),
        goal=asked.goal,
        planned_s=10 * HOUR,
        rules=rules,
        forced=forced,
    )
