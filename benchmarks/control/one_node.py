"""The job of "Can't Be Late": one V100 for 48 h, 0.2 h to restart, spot at 0.97 and 3.06 $/h."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.adapters.traces.csv_campaigns import read_csv_campaigns
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    FixedBatch,
    ModelSize,
    SpotBehaviour,
    Strategy,
    Workload,
)
from spotwright.simulator.campaign import Campaign
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.series import Series

KIND = "p3.2xlarge"
SPOT_USD, ON_DEMAND_USD = 0.97, 3.06
WORK_HOURS, RESTART_HOURS = 48.0, 0.2
CAMPAIGN = "availability:1-node:aws-02-15-2023:"
# As in the paper: nodes go without a notice, and checkpoints cost next to nothing.
CONDITIONS = Conditions(notice_s=0.0, checkpoint_every_s=10.0)


def zone_campaigns(traces: Path) -> list[Campaign]:
    """Return the five zones of the campaign of 15 February 2023, out of a file of traces."""
    found = read_csv_campaigns(traces)
    return [campaign for campaign in found if campaign.name.startswith(CAMPAIGN)]


def spot_pool(zone: str) -> Pool:
    """Return the pool of spot nodes of a zone."""
    return Pool(KIND, zone, Market.SPOT)


def market_of(zones: Sequence[str]) -> Catalog:
    """Return a market in which some zones offer one type, all at the same prices."""
    bundled = load_snapshot(bundled_path(Cloud.AWS))
    now = datetime(2023, 2, 15, tzinfo=UTC)
    kind = replace(bundled.instance_types[KIND], retired=False)
    return Catalog(
        Snapshot(
            cloud=Cloud.AWS,
            price_times={zone[:-1]: now for zone in zones},
            retired_price_times={},
            sources={},
            gpus=bundled.gpus,
            instance_types={KIND: kind},
            prices=tuple(ZonePrice(KIND, z[:-1], z, ON_DEMAND_USD, SPOT_USD) for z in zones),
            interruption_fraction={},
        )
    )


def job_within(deadline_hours: float) -> JobSpec:
    """Return the job: one GPU at 100 samples/s for 48 h."""
    return JobSpec(
        name="cannot-be-late",
        workload=Workload(
            strategy=Strategy.ALLREDUCE,
            model=ModelSize(parameter_bytes=1e8),
            batch=FixedBatch(per_gpu_count=100),
            compute={"V100": ComputeProfile(per_sample_s=0.01)},
            allreduce=AllreduceTuning(),
            spot=SpotBehaviour(checkpoint_s=0.01, restart_s=RESTART_HOURS * 3600),
        ),
        goal=Goal(
            target=Target(kind=TargetKind.SAMPLES, value=WORK_HOURS * 3600 * 100),
            deadline_s=deadline_hours * 3600,
        ),
        limits=Limits(max_nodes=1, placement=Placement.ANYWHERE),
    )


def capacities(campaigns: Sequence[Campaign]) -> Mapping[Pool, Series]:
    """Return each zone's series as its pool's capacity."""
    return {spot_pool(campaign.zone): campaign.nodes for campaign in campaigns}
