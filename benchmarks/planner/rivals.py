"""What rivals find on the same problem, in the same process."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from benchmarks.planner.timing import Run, tell, timed_solve
from spotwright.domain.offer import Market
from spotwright.planner.baselines.homogeneous import homogeneous_fastest
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.baselines.spotdnn import spotdnn
from spotwright.planner.problem import Problem

Rival = Callable[[Problem], BaselineResult]

_GAP = 1e-3  # by which ours may be dearer than the optimum


def on_demand(problem: Problem) -> BaselineResult:
    """Search without the spot market, no longer than any search: baselines.on_demand_only waits."""
    limits = replace(problem.job.limits, markets=frozenset({Market.ON_DEMAND}))
    stable = replace(
        problem,
        job=replace(problem.job, limits=limits),
        worker_offers=[o for o in problem.worker_offers if o.market is Market.ON_DEMAND],
    )
    run = timed_solve(f"{problem.job.name}, on-demand", stable)
    return BaselineResult(
        name="on-demand",
        fleet=run.solution.fleet,
        cost_usd=run.solution.cost_usd,
        duration_s=run.solution.duration_s,
        fleet_count=run.solution.box_count,
    )


RIVALS: dict[str, Rival] = {
    "Alg. 1": spotdnn,
    "homogeneous": homogeneous_fastest,
    "on-demand": on_demand,
}


def compared(
    runs: Sequence[tuple[Run, Problem]], rivals: dict[str, Rival] | None = None
) -> dict[str, str]:
    """Return each rival's cost, as a multiple of ours, and its time: medians over the runs."""
    found = {}
    for name, rival in (rivals or RIVALS).items():
        ratios, seconds = zip(*(_one(name, rival, *pair) for pair in runs), strict=True)
        beaten = " BEATS US" if min(ratios) < 1 - _GAP else ""
        found[name] = f"{ratio_text(median(ratios))} in {median(seconds):.2f} s{beaten}"
    return found


def _one(name: str, rival: Rival, run: Run, problem: Problem) -> tuple[float, float]:
    started_s = time.perf_counter()
    result = rival(problem)
    seconds = time.perf_counter() - started_s
    tell(f"  {seconds:6.2f} s  {name}: {run.what}: {result.cost_usd:.2f} $")
    return cost_ratio(result, run), seconds


def cost_ratio(result: BaselineResult, run: Run) -> float:
    """Return a rival's cost by ours; infinite where it finds nothing and we do."""
    if math.isinf(run.solution.cost_usd):
        return math.nan if math.isinf(result.cost_usd) else 0.0
    return result.cost_usd / run.solution.cost_usd


def ratio_text(ratio: float) -> str:
    """Return a cost ratio as text."""
    if math.isnan(ratio):
        return "none either"
    return "finds none" if math.isinf(ratio) else f"x{ratio:.3f}"
