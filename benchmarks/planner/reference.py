"""The synthetic reference problem: seven types, six goals, every fleet evaluated for comparison.

Prices and quotas are spotDNN's (January 2023), one m5.xlarge serves the parameters; compute times
and coefficients are plausible, not measured: examples/papers/resnet110.yaml. 19 million fleets.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.planner.markets import catalog
from benchmarks.planner.rivals import cost_ratio, ratio_text
from benchmarks.planner.timing import Run, tell, timed_solve
from benchmarks.table import print_table
from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.job import JobSpec, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.planner.baselines.cynthia import cynthia
from spotwright.planner.baselines.exhaustive import exhaustive
from spotwright.planner.baselines.homogeneous import homogeneous_fastest
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.baselines.spotdnn import spotdnn
from spotwright.planner.problem import Problem

TARGET_S = 0.2
GOALS = ((0.9, 2400), (0.8, 2400), (0.7, 3600), (0.65, 3600), (0.6, 5400), (0.6, 4000))
_JOB = Path(__file__).parents[2] / "examples/papers/resnet110.yaml"
SPOT_USD_PER_HOUR = {
    "p3.2xlarge": 1.25,
    "p2.8xlarge": 2.16,
    "g4dn.12xlarge": 1.22,
    "g4dn.4xlarge": 0.36,
    "g3.16xlarge": 1.37,
    "g3.8xlarge": 0.69,
    "g3.4xlarge": 0.34,
}
SERVER_USD_PER_HOUR = {"m5.xlarge": 0.192}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One goal: ours, and what the rivals found."""

    run: Run
    exhaustive: BaselineResult
    exhaustive_s: float
    rivals: Mapping[str, BaselineResult]

    @property
    def optimal(self) -> bool:
        """Whether ours costs what the best of all fleets costs, to the gap that was asked for."""
        if self.exhaustive.fleet is None:
            return self.run.closed and self.run.solution.fleet is None
        return self.run.solution.cost_usd <= self.exhaustive.cost_usd * (1 + 1e-3)

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        ours = self.run.solution.cost_usd
        not_dearer = all(ours <= rival.cost_usd * (1 + 1e-9) for rival in self.rivals.values())
        met = self.optimal and not_dearer and self.run.wall_s <= TARGET_S
        return "met" if met else "missed"


def reference_problem(loss: float, deadline_s: float) -> Problem:
    """Return the reference problem with one goal."""
    return Problem(
        job=reference_job(loss, deadline_s),
        worker_offers=_offers(SPOT_USD_PER_HOUR),
        server_offers=_offers(SERVER_USD_PER_HOUR),
        gpu_facts=catalog().gpu,
    )


def reference_job(loss: float, deadline_s: float) -> JobSpec:
    """Return the reference problem's job with one goal."""
    job = read_job_file(_JOB).of_model(None)
    target = Target(kind=TargetKind.LOSS, value=loss)
    return replace(
        job,
        workload=replace(job.workload, pcie_mbps=80e3),
        goal=replace(job.goal, target=target, deadline_s=float(deadline_s)),
        limits=replace(job.limits, max_nodes=71, max_parameter_servers=1),
    )


def print_reference() -> list[Outcome]:
    """Run all goals and print them."""
    tell("reference problem")
    outcomes = [_outcome(loss, deadline_s) for loss, deadline_s in GOALS]
    names = list(outcomes[0].rivals)
    header = ("goal", "ours $", "wall s", "CPU s", "boxes", "target s", "verdict", "exhaustive",
              *names)  # fmt: skip
    print_table("Synthetic reference problem", header, [_cells(o) for o in outcomes])
    return outcomes


def _outcome(loss: float, deadline_s: float) -> Outcome:
    problem = reference_problem(loss, deadline_s)
    run = timed_solve(f"loss {loss:g} in {deadline_s} s", problem)
    searches = {"Alg. 1": spotdnn, "Cynthia": cynthia, "homogeneous": homogeneous_fastest}
    rivals = {name: search(problem) for name, search in searches.items()}
    started_s = time.perf_counter()
    best = exhaustive(problem)
    exhaustive_s = time.perf_counter() - started_s
    tell(f"  {exhaustive_s:6.2f} s  exhaustive: {best.fleet_count} fleets, {best.cost_usd:.4f} $")
    return Outcome(run, best, exhaustive_s, rivals)


def _cells(outcome: Outcome) -> tuple[str, ...]:
    run = outcome.run
    ratio = ratio_text(cost_ratio(outcome.exhaustive, run))
    return (
        run.what,
        f"{run.solution.cost_usd:.4f}" if run.solution.fleet else "proved infeasible",
        f"{run.wall_s:.3f}",
        f"{run.cpu_s:.3f}",
        str(run.solution.box_count),
        f"{TARGET_S:g}",
        outcome.verdict,
        f"{ratio} in {outcome.exhaustive_s:.1f} s",
        *(ratio_text(cost_ratio(rival, run)) for rival in outcome.rivals.values()),
    )


def _offers(usd_per_hour: Mapping[str, float]) -> list[Offer]:
    """Return offers that nobody takes away: the paper's model has no interruptions."""
    return [
        Offer(
            instance_type=catalog().instance_type(name),
            region="us-east-1",
            zone="use1-az1",
            market=Market.ON_DEMAND,
            price_usd_per_hour=price,
        )
        for name, price in usd_per_hour.items()
    ]
