"""How the time grows with the market and with the size of the fleet.

Markets are bundled types in made-up regions of three zones, at moved prices; eight nodes of each
pool; deadlines of 1.5 times the fastest.
"""

from dataclasses import dataclass, replace

from benchmarks.planner.jobs import (
    FITTED,
    LARGE,
    SMALL,
    loss_job,
    per_pool,
    ring_job,
    samples_job,
    within,
)
from benchmarks.planner.markets import synthetic_problem
from benchmarks.planner.timing import Run, tell, timed_fastest, timed_solve
from benchmarks.table import print_table
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import Contention

POOLS = (10, 100, 1_000, 5_000)
NODES = (8, 64, 256)
POOLS_AT, NODES_AT = 1_000, 64  # where the other axis stands
DEADLINE = 1.5
_CAPACITY = 8


@dataclass(frozen=True, slots=True)
class Point:
    """One search of the sweep."""

    job: str
    pools: int
    nodes: int
    run: Run


def print_growth() -> list[Point]:
    """Run and print."""
    tell("growth")
    sizes = [(pools, NODES_AT) for pools in POOLS]
    sizes += [(POOLS_AT, nodes) for nodes in NODES if nodes != NODES_AT]
    points = [_point(name, job, *size) for name, job in _jobs().items() for size in sizes]
    by_pools = {
        size: [p for p in points if (p.pools, p.nodes) == (size, NODES_AT)] for size in POOLS
    }
    by_nodes = {
        size: [p for p in points if (p.pools, p.nodes) == (POOLS_AT, size)] for size in NODES
    }
    _print_axis(f"Growth with the pools, <= {NODES_AT} nodes", "pools", by_pools)
    _print_axis(f"Growth with the most nodes, {POOLS_AT:,} pools", "nodes", by_nodes)
    return points


def _jobs() -> dict[str, JobSpec]:
    return {
        "a loss, spotDNN's contention": loss_job(FITTED, SMALL, Contention.SPOTDNN),
        "a loss, queueing": loss_job(FITTED, LARGE, Contention.QUEUEING),
        "samples, spotDNN's contention": samples_job(FITTED, LARGE, Contention.SPOTDNN),
        "all-reduce": ring_job(),
    }


def _point(name: str, job: JobSpec, pools: int, nodes: int) -> Point:
    limited = per_pool(job, _CAPACITY)
    limited = replace(limited, limits=replace(limited.limits, max_nodes=nodes))
    problem = synthetic_problem(limited, pool_count=pools)
    what = f"{name}, {pools} pools, {nodes} nodes"
    fastest = timed_fastest(problem)
    deadline_s = DEADLINE * fastest.solution.duration_s
    run = timed_solve(what, replace(problem, job=within(problem.job, deadline_s)))
    return Point(name, pools, nodes, run)


def _print_axis(title: str, unit: str, by_size: dict[int, list[Point]]) -> None:
    header = ["wall s (CPU s), boxes", *(f"{size:,} {unit}" for size in by_size)]
    rows = [
        [name, *(_cell(points[i].run) for points in by_size.values())]
        for i, name in enumerate(_jobs())
    ]
    print_table(title, header, rows)


def _cell(run: Run) -> str:
    state = "" if run.closed else f", open: gap {100 * run.gap_fraction:.0f} %"
    return f"{run.wall_s:.2f} ({run.cpu_s:.2f}), {run.solution.box_count}{state}"
