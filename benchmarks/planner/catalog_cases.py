"""The same jobs in markets of one and of five regions.

A job's deadlines are multiples of the time of the fastest fleet, which is searched for first:
1.02 leaves nearly nothing to choose, 3 nearly everything. Below 1 no fleet is fast enough.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.planner.jobs import (
    ADVERSARIAL,
    FITTED,
    LARGE,
    ROOMY,
    SMALL,
    loss_job,
    ring_job,
    samples_job,
    within,
)
from benchmarks.planner.markets import bundled_problem
from benchmarks.planner.rivals import Rival, compared
from benchmarks.planner.table import Row
from benchmarks.planner.timing import Run, patience_s, tell, timed_fastest, timed_solve
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import Contention
from spotwright.planner.problem import Problem

DEADLINES = (1.02, 1.1, 1.5, 3.0)
RING_DEADLINES = (1.02, 1.1, 1.5, 3.0, 5.0, 10.0, 30.0)
TOO_SHORT = (0.97, 0.8, 0.3)
RIVALS_AT = 1.5  # the deadline at which rivals are run too
MOST_OPEN = 3  # searches of one kind that may fail to close before the rest is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Jobs of one kind and the deadlines they get."""

    name: str
    jobs: Sequence[JobSpec]
    fixed_work: bool
    deadlines: Sequence[float] = DEADLINES


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Seconds that the worst search of a kind may take."""

    loss_s: float
    fixed_work_s: float
    infeasible_s: float

    def of(self, family: Family) -> float:
        """Return the target of a kind of job."""
        return self.fixed_work_s if family.fixed_work else self.loss_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A market, how jobs are changed to fit it, and how fast they have to be planned."""

    name: str
    regions: Collection[str]
    adapt: Callable[[JobSpec], JobSpec]
    targets: Targets
    rivals: dict[str, Rival]
    rival_jobs: int | None = None  # of each kind; None: all of them


@dataclass(frozen=True, slots=True)
class _Searched:
    """A job with one deadline, and what the search made of it."""

    problem: Problem
    multiple: float
    run: Run


def families() -> list[Family]:
    """Return every kind of job, the hard ones too."""
    spotdnn, queueing = Contention.SPOTDNN, Contention.QUEUEING
    losses = {
        "fitted law, spotDNN's contention": (FITTED, (LARGE, SMALL), spotdnn),
        "fitted law, roomy server": (FITTED, (ROOMY,), spotdnn),
        "fitted law, queueing": (FITTED, (LARGE, SMALL), queueing),
        "adversarial law, spotDNN's contention": (ADVERSARIAL, (LARGE, SMALL), spotdnn),
        "adversarial law, queueing": (ADVERSARIAL, (LARGE, SMALL), queueing),
    }
    found = [
        Family(name=name, jobs=[loss_job(law, s, rule) for s in servings], fixed_work=False)
        for name, (law, servings, rule) in losses.items()
    ]
    for name, rule in {"spotDNN's contention": spotdnn, "queueing": queueing}.items():
        jobs = [samples_job(FITTED, serving, rule) for serving in (LARGE, SMALL)]
        found.append(Family(name=f"samples, {name}", jobs=jobs, fixed_work=True))
    ring = [ring_job()]
    found.append(Family(name="all-reduce", jobs=ring, fixed_work=True, deadlines=RING_DEADLINES))
    return found


def searched_rows(setting: Setting, chosen: Sequence[Family]) -> list[Row]:
    """Search for every job at every deadline: a row per kind, then those too short and fastest."""
    tell(setting.name)
    found: list[Row] = []
    fastest: list[Run] = []
    hopeless: dict[bool, _Searches] = {False: _Searches(), True: _Searches()}
    for family in chosen:
        searches = _Searches()
        for job in family.jobs:
            problem = bundled_problem(setting.adapt(job), setting.regions)
            first = timed_fastest(problem)
            fastest.append(first)
            searches.add(problem, first, family.deadlines)
            hopeless[family.fixed_work].add(problem, first, TOO_SHORT)
        found.append(_row(setting, family, searches))
    for fixed_work, searches in hopeless.items():
        name = f"infeasible by 3, 20, 70 %: {'fixed work' if fixed_work else 'a loss'}"
        if searches.done:
            found.append(searches.row(name, target_s=setting.targets.infeasible_s))
    found.append(Row(what="the fastest fleet of each job", runs=fastest))
    return found


@dataclass(slots=True)
class _Searches:
    """The searches of one row; once several did not close, the rest is left out."""

    done: list[_Searched] = field(default_factory=list)
    left_out: int = 0

    def add(self, problem: Problem, fastest: Run, multiples: Sequence[float]) -> None:
        """Search for the cheapest fleet at some deadlines."""
        for multiple in multiples:
            runs = [one.run for one in self.done]
            if sum(not run.closed for run in runs) >= MOST_OPEN:
                self.left_out += 1
                continue
            job = within(problem.job, multiple * fastest.solution.duration_s)
            limited = replace(problem, job=job)
            what = f"{job.name}, {multiple:g} x fastest"
            run = timed_solve(what, limited, limit_s=patience_s(runs))
            self.done.append(_Searched(limited, multiple, run))

    def row(self, what: str, *, target_s: float, rivals: Mapping[str, str] | None = None) -> Row:
        """Return them as a row."""
        runs = [one.run for one in self.done]
        return Row(
            what=what, runs=runs, target_s=target_s, left_out=self.left_out, rivals=rivals or {}
        )


def _row(setting: Setting, family: Family, searches: _Searches) -> Row:
    pairs = [(one.run, one.problem) for one in searches.done if one.multiple == RIVALS_AT]
    pairs = pairs[: setting.rival_jobs]
    rivals = compared(pairs, setting.rivals) if setting.rivals and pairs else {}
    return searches.row(family.name, target_s=setting.targets.of(family), rivals=rivals)
