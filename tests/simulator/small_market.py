"""A job of ten hours on V100 nodes, in a market whose capacity is written by hand."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    FixedBatch,
    ModelSize,
    ParameterServing,
    SpotBehaviour,
    Strategy,
    Workload,
)
from spotwright.simulator.series import Series

KIND, SERVER = "p3.2xlarge", "m5.xlarge"
SPOT_USD, ON_DEMAND_USD = 1.0, 3.0
HOUR_S = 3600.0
RESTART_S = 720.0
WORK_HOURS = 10.0


def spot(zone: str = "a", kind: str = KIND) -> Pool:
    return Pool(kind, f"zone-{zone}", Market.SPOT)


def on_demand(zone: str = "a", kind: str = KIND) -> Pool:
    return Pool(kind, f"zone-{zone}", Market.ON_DEMAND)


@cache
def market_of(zones: str = "a", server: bool = False) -> Catalog:
    """Return a market with the same prices in some zones, named by a letter each."""
    bundled = load_snapshot(bundled_path(Cloud.AWS))
    kinds = [KIND, SERVER] if server else [KIND]
    types = {kind: replace(bundled.instance_types[kind], retired=False) for kind in kinds}
    prices = [
        ZonePrice(KIND, "region", f"zone-{zone}", ON_DEMAND_USD, SPOT_USD) for zone in zones
    ] + [ZonePrice(SERVER, "region", f"zone-{zone}", 0.2, None) for zone in zones if server]
    return Catalog(
        Snapshot(
            cloud=Cloud.AWS,
            price_times={"region": datetime(2023, 2, 15, tzinfo=UTC)},
            retired_price_times={},
            sources={},
            gpus=bundled.gpus,
            instance_types=types,
            prices=tuple(prices),
            interruption_fraction={},
        )
    )


def job_of(
    *,
    deadline_hours: float | None = 14.0,
    nodes: int = 1,
    asynchronous: bool = False,
    **spot: Any,
) -> JobSpec:
    """Return a job that takes ten hours on `nodes` nodes."""
    samples = WORK_HOURS * HOUR_S * 100 * (nodes if asynchronous else 1)
    workload = Workload(
        strategy=Strategy.ASP_PS if asynchronous else Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=1e3 if asynchronous else 1e8),
        batch=FixedBatch(per_gpu_count=100),
        compute={"V100": ComputeProfile(per_sample_s=0.01)},
        allreduce=None if asynchronous else AllreduceTuning(),
        parameter_serving=ParameterServing(default_type=SERVER) if asynchronous else None,
        spot=SpotBehaviour(**{"checkpoint_s": 1e-5, "restart_s": RESTART_S, **spot}),
    )
    return JobSpec(
        name="ten-hours",
        workload=workload,
        goal=Goal(
            target=Target(kind=TargetKind.SAMPLES, value=samples),
            deadline_s=None if deadline_hours is None else deadline_hours * HOUR_S,
        ),
        limits=Limits(max_nodes=nodes + asynchronous, placement=Placement.ANYWHERE),
    )


def hours(*points: tuple[float, float], end: float = 100.0) -> Series:
    """Return a series of (hour, value)."""
    return Series.of([(hour * HOUR_S, value) for hour, value in points], end_s=end * HOUR_S)
