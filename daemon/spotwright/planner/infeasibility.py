"""Why no fleet meets a goal: which limits clash, and the least that must give.

Every figure of the job is loosened by itself; one that helps when it does not restrict at all is
part of the clash. Where none helps by itself, deadline and budget are loosened by the same factor.
Where those are not all that clashes, figures are loosened together until it helps, and each is
brought back as far as the others allow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spotwright.domain.job import JobSpec
from spotwright.domain.plan import SmallestChange
from spotwright.planner.knobs import Knob, knobs, turned
from spotwright.planner.least_change import Judge, Least
from spotwright.planner.problem import Problem, Watch

_GOALS = ("goal.deadline", "goal.budget")


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasibility:
    """What stands in the way."""

    clashes: tuple[str, ...]
    changes: tuple[SmallestChange, ...]  # each helps by itself
    together: tuple[SmallestChange, ...]  # where none does: these help all at once


def explain_infeasible(
    job: JobSpec, problem_of: Callable[[JobSpec], Problem], watch: Watch
) -> Infeasibility:
    """Find the limits that clash and the smallest changes that help."""
    judge, found = Judge(problem_of, watch), []
    for knob in knobs(job):
        least = None if watch.stopped() else judge.least(knob)
        if least is not None:
            found.append((knob, least))
    together = [] if found or watch.stopped() else _together(job, judge)
    clashes = [_clash(knob, least) for knob, least in found]
    if watch.stopped():
        clashes.append("what would help was not examined to the end")
    elif together:
        now = " and ".join(f"{knob.limit} is {knob.text(knob.now)}" for knob, _ in together)
        clashes.append(f"{now}: to change one of them does not help")
    elif not found:
        clashes.append(
            "nothing that the limits allow can train this job: no type has the memory, or every "
            "fleet lies outside the range that the loss law was fitted on"
        )
    return Infeasibility(
        clashes=tuple(clashes),
        changes=tuple(_change(knob, least) for knob, least in found),
        together=tuple(_change(knob, least) for knob, least in together),
    )


def less_sure(
    job: JobSpec, problem_of: Callable[[JobSpec], Problem], watch: Watch, *, best: float
) -> SmallestChange | None:
    """Return the confidence that can be had, `best` being that of the surest fleet tried."""
    asked, goal = job.goal.confidence_fraction, replace(job.goal, confidence_fraction=best)
    if not Judge(problem_of, watch).possible(replace(job, goal=goal)):
        return None
    text = f"goal.confidence from {asked:.1%} to {int(best * 1000) / 10:g}%"
    return SmallestChange(limit="goal.confidence", now=asked, needed=best, proved=False, text=text)


def _clash(knob: Knob, least: Least) -> str:
    takes = "it takes" if least.proved else "it takes at most"
    return f"{knob.limit} is {knob.text(knob.now)}, {takes} {knob.text(least.value)}"


def _change(knob: Knob, least: Least) -> SmallestChange:
    doubt = "" if least.proved else " (less may do: that is not proved)"
    return SmallestChange(
        limit=knob.limit,
        now=knob.now,
        needed=least.value,
        proved=least.proved,
        text=f"{knob.limit} from {knob.text(knob.now)} to {knob.text(least.value)}{doubt}",
    )


def _together(job: JobSpec, judge: Judge) -> list[tuple[Knob, Least]]:
    """Return figures that help all at once, none of which does by itself; none: nothing helps."""
    by_limit = {knob.limit: knob for knob in knobs(job)}
    goals = [by_limit[limit] for limit in _GOALS if limit in by_limit]
    if len(goals) == len(_GOALS):
        factor = judge.least(_scaled(job, goals))
        if factor is not None:
            return [(knob, Least(knob.now * factor.value, factor.proved)) for knob in goals]
    needed = _needed(job, judge, by_limit)
    return _brought_back(job, judge, [by_limit[limit] for limit in needed])


def _scaled(job: JobSpec, goals: Sequence[Knob]) -> Knob:
    """Return deadline and budget as one figure: how many times as much of both."""
    return Knob(
        limit=" and ".join(knob.limit for knob in goals),
        now=1.0,
        whole=False,
        loosest=float("inf"),
        turned=lambda factor: turned(job, {knob.limit: factor * knob.now for knob in goals}),
        text=lambda factor: f"{factor:.3g} times",
    )


def _needed(job: JobSpec, judge: Judge, by_limit: Mapping[str, Knob]) -> list[str]:
    """Return limits that help when none of them restricts, and would not without any one."""
    loosest = {limit: knob.loosest for limit, knob in by_limit.items()}
    if not judge.possible(turned(job, loosest)):
        return []
    for limit in by_limit:
        fewer = {other: value for other, value in loosest.items() if other != limit}
        if judge.possible(turned(job, fewer)):
            loosest = fewer
    return [*loosest]


def _brought_back(job: JobSpec, judge: Judge, needed: Sequence[Knob]) -> list[tuple[Knob, Least]]:
    """Return the least of each figure, those before it being at theirs, those after it loose."""
    values, found = {knob.limit: knob.loosest for knob in needed}, []
    for knob in needed:
        others = {limit: value for limit, value in values.items() if limit != knob.limit}
        least = judge.least(_with_others(job, knob, others))
        if least is None:  # the search was ended
            return []
        values[knob.limit] = least.value
        found.append((knob, least))
    return found


def _with_others(job: JobSpec, knob: Knob, others: Mapping[str, float]) -> Knob:
    """Return a figure of the job in which others are changed."""
    return replace(knob, turned=lambda value: turned(job, {**others, knob.limit: value}))
