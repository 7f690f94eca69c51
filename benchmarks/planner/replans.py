"""A pool is lost: plan again, starting from what still runs.

The job has a fleet for a deadline of 1.5 times the fastest. One of its pools is taken away and
excluded, prices have moved since, all but that pool's nodes still run; new nodes are paid for five
minutes before they train; parameter servers stay, because they hold the model. Ten draws of prices,
the largest pool and the next one lost in turn.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from benchmarks.planner.catalog_cases import MOST_OPEN
from benchmarks.planner.jobs import (
    ADVERSARIAL,
    FITTED,
    LARGE,
    SMALL,
    loss_job,
    per_pool,
    ring_job,
    samples_job,
    within,
)
from benchmarks.planner.markets import FIVE_REGIONS, ONE_REGION, bundled_problem, repriced
from benchmarks.planner.table import Row, print_rows
from benchmarks.planner.timing import HURRIED_S, Run, patience_s, tell, timed_fastest, timed_solve
from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.domain.plan import RunningFleet
from spotwright.domain.workload import Contention
from spotwright.planner.problem import Problem

REPLANS = 10
DEADLINE = 1.5
CAPACITY = 4  # of each pool, so that fleets have several
MEDIAN_TARGET_S, WORST_TARGET_S = 0.3, 0.5
_PRICE_SPREAD = 0.02


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    regions: Collection[str]
    adapt: Callable[[JobSpec], JobSpec]


_PLACES = (
    _Place("one region", ONE_REGION, lambda job: per_pool(job, CAPACITY)),
    _Place("five regions", FIVE_REGIONS, lambda job: per_pool(job, CAPACITY)),
)


def print_replans() -> list[Row]:
    """Run and print."""
    rows = []
    for place in _PLACES:
        tell(f"replans, {place.name}")
        rows += [_row(place, job) for job in _jobs()]
    print_rows("Replans after losing a pool, warm start", rows)
    return rows


def _jobs() -> list[JobSpec]:
    spotdnn, queueing = Contention.SPOTDNN, Contention.QUEUEING
    return [
        loss_job(FITTED, LARGE, spotdnn),
        loss_job(FITTED, SMALL, spotdnn),
        loss_job(FITTED, LARGE, queueing),
        loss_job(ADVERSARIAL, SMALL, spotdnn),
        samples_job(FITTED, LARGE, spotdnn),
        ring_job(),
    ]


def _row(place: _Place, job: JobSpec) -> Row:
    problem, running = _started(place, job)
    runs: list[Run] = []
    for seed in range(REPLANS):
        if sum(not run.closed for run in runs) < MOST_OPEN:
            runs.append(_replan(problem, running, seed, limit_s=patience_s(runs)))
    return Row(
        what=f"{place.name}: {job.name}",
        runs=runs,
        left_out=REPLANS - len(runs),
        target_s=WORST_TARGET_S,
        median_target_s=MEDIAN_TARGET_S,
    )


def _started(place: _Place, job: JobSpec) -> tuple[Problem, Fleet]:
    """Return a problem and the fleet that is rented for it."""
    problem = bundled_problem(place.adapt(job), place.regions)
    fastest = timed_fastest(problem)
    deadline_s = DEADLINE * fastest.solution.duration_s
    problem = replace(problem, job=within(problem.job, deadline_s))
    first = timed_solve(f"{job.name}, first plan", problem, limit_s=HURRIED_S)
    fleet = first.solution.fleet or fastest.solution.fleet
    assert fleet is not None
    return problem, fleet


def _replan(problem: Problem, fleet: Fleet, seed: int, *, limit_s: float) -> Run:
    by_size = sorted(fleet.workers, key=lambda group: -group.node_count)
    lost = by_size[seed % min(2, len(by_size))]
    kept = [group for group in fleet.workers if group is not lost]
    offers = repriced(problem.worker_offers, seed=seed, spread=_PRICE_SPREAD)
    left = replace(
        problem,
        worker_offers=[o for o in offers if lost.offer and o.pool != lost.offer.pool],
        running=RunningFleet(nodes=_by_pool(kept), servers=_by_pool(fleet.servers)),
    )
    start = [Fleet(nodes=(*kept, *fleet.servers))] if kept else []
    return timed_solve(f"{problem.job.name}, replan {seed}", left, start=start, limit_s=limit_s)


def _by_pool(groups: Sequence[NodeGroup]) -> dict[Pool, int]:
    return {group.offer.pool: group.node_count for group in groups if group.offer}
