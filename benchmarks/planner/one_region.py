"""The whole bundled catalog in us-east-1: both markets, at most 64 nodes, 16 of each type."""

from benchmarks.planner.catalog_cases import Setting, Targets, families, searched_rows
from benchmarks.planner.markets import ONE_REGION
from benchmarks.planner.rivals import RIVALS
from benchmarks.planner.table import Row, print_rows

_SETTING = Setting(
    name="one region",
    regions=ONE_REGION,
    adapt=lambda job: job,
    targets=Targets(loss_s=2.0, fixed_work_s=0.3, infeasible_s=1.0),
    rivals=RIVALS,
)


def print_one_region() -> list[Row]:
    """Run and print."""
    rows = searched_rows(_SETTING, families())
    print_rows("One region, all pools, quota 16 per type, <= 64 nodes", rows)
    return rows
