"""A job to ask use cases about, and the market that ships with the program."""

from functools import cache
from typing import Any

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.workload import ModelSize, ParameterServing, Strategy, Workload


@cache
def snapshot() -> Snapshot:
    return load_snapshot(bundled_path(Cloud.AWS))


@cache
def catalog() -> Catalog:
    return Catalog(snapshot())


def job(strategy: Strategy = Strategy.ALLREDUCE, **limits: Any) -> JobSpec:
    """Return a job of that strategy; keyword arguments are its limits."""
    return JobSpec(
        name="example",
        workload=workload(strategy),
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=100)),
        limits=Limits(**limits),
    )


def workload(strategy: Strategy = Strategy.ALLREDUCE, **changes: Any) -> Workload:
    serving = ParameterServing(default_type="m5.xlarge", default_count=2)
    return Workload(
        strategy=strategy,
        model=ModelSize(parameter_bytes=1e8),
        parameter_serving=serving if strategy.uses_parameter_servers else None,
        **changes,
    )
