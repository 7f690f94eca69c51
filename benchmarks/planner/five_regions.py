"""All pools of five regions, four nodes of each pool at most; a fleet stands in one region.

Across regions traffic and round trips are on the bill, so that mixing them hardly ever pays; a few
jobs that may do so all the same are searched last.
"""

from benchmarks.planner.catalog_cases import Setting, Targets, families, searched_rows
from benchmarks.planner.jobs import per_pool
from benchmarks.planner.markets import FIVE_REGIONS
from benchmarks.planner.rivals import RIVALS
from benchmarks.planner.table import Row, print_rows
from spotwright.domain.job import Placement

CAPACITY = 4
_TARGETS = Targets(loss_s=3.0, fixed_work_s=0.8, infeasible_s=1.0)
_ONE_OF_FIVE = Setting(
    name="five regions",
    regions=FIVE_REGIONS,
    adapt=lambda job: per_pool(job, CAPACITY),
    targets=_TARGETS,
    rivals=RIVALS,
    rival_jobs=1,
)
_MIXED = Setting(
    name="five regions, mixed",
    regions=FIVE_REGIONS,
    adapt=lambda job: per_pool(job, CAPACITY, Placement.ANYWHERE),
    targets=_TARGETS,
    rivals={},
)
_ALSO_MIXED = {"fitted law, spotDNN's contention", "samples, spotDNN's contention", "all-reduce"}


def print_five_regions() -> list[Row]:
    """Run and print."""
    rows = searched_rows(_ONE_OF_FIVE, families())
    print_rows("Five regions, 4 nodes per pool, a fleet in any one of them", rows)
    mixed = searched_rows(_MIXED, [f for f in families() if f.name in _ALSO_MIXED])
    print_rows("Five regions, 4 nodes per pool, a fleet across all of them", mixed)
    return [*rows, *mixed]
