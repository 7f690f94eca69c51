"""Sub-problems of real searches, written down for other solvers to try.

Only boxes that are not dropped at sight have a program to relax: what is recorded is what the
solver is really asked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.jobs import within
from benchmarks.planner.timing import timed_fastest
from spotwright.domain.plan import Objective
from spotwright.planner.asynchronous_boxes import AsynchronousSpace
from spotwright.planner.asynchronous_workers import Box
from spotwright.planner.branch_and_bound import Incumbent, Relaxed, search
from spotwright.planner.context import Context
from spotwright.planner.linear_program import LinearProgram, Optimum
from spotwright.planner.local_search import LocalSearch
from spotwright.planner.placements import sites
from spotwright.planner.problem import Problem, Watch

Floats = NDArray[np.float64]
Item = TypeVar("Item")

_DEADLINES = (1.1, 1.5)
_MOST_PROGRAMS = 3_000  # of one market


@dataclass(frozen=True, slots=True)
class Leaf:
    """A box of which all whole fleets that are left were evaluated."""

    program: LinearProgram
    context: Context
    fleets: Floats
    reduced: Floats  # costs, at the relaxation's multipliers
    slack: float


@dataclass(frozen=True, slots=True)
class Recording:
    """What searches asked of their solver."""

    relaxations: list[LinearProgram] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    def middle(self, *, relaxations: int, leaves: int) -> "Recording":
        """Return some of each, in the order in which they were asked."""
        return Recording(_middle(self.relaxations, relaxations), _middle(self.leaves, leaves))


class _RecordedSpace:
    """A space that writes down every program it relaxes."""

    def __init__(self, context: Context, recording: Recording) -> None:
        self.context, self._recording = context, recording
        self._space = AsynchronousSpace(context)

    def roots(self, target: float) -> Iterable[tuple[float, Box]]:
        """Pass on."""
        return self._space.roots(target)

    def relax(self, box: Box, target: float, *, most_counts: int) -> Relaxed | None:
        """Pass on, and write down what was asked."""
        relaxed = self._space.relax(box, target, most_counts=most_counts)
        if relaxed is not None and relaxed.program is not None and relaxed.asked:
            self._recording.relaxations.append(relaxed.program)
            if relaxed.fleets is not None and relaxed.fleets.shape[1]:
                self._recording.leaves.append(_leaf(relaxed.program, self.context, relaxed.fleets))
        return relaxed

    def split(
        self, box: Box, relaxed: Relaxed, improves: Callable[[Floats], bool]
    ) -> Sequence[Box]:
        """Pass on."""
        return self._space.split(box, relaxed, improves)


def _leaf(program: LinearProgram, context: Context, fleets: Floats) -> Leaf:
    optimum = program.relaxed(np.ones(len(program.low), dtype=np.bool_))
    assert isinstance(optimum, Optimum)
    bound, reduced = program.bound(optimum.multipliers)
    return Leaf(program, context, fleets, reduced, -bound)


def record(problem: Problem) -> Recording:
    """Search for the cheapest fleet at some deadlines, and return what was asked on the way."""
    recording = Recording()
    fastest = timed_fastest(problem)
    for number, multiple in enumerate(_DEADLINES, start=1):
        job = within(problem.job, multiple * fastest.solution.duration_s)
        most = _MOST_PROGRAMS * number // len(_DEADLINES)
        _search(replace(problem, job=job), recording, most_programs=most)
    return recording


def _search(problem: Problem, recording: Recording, *, most_programs: int) -> None:
    incumbent = Incumbent()
    local = LocalSearch(incumbent)
    contexts = [
        Context(
            problem.job,
            site.workers,
            site.servers,
            objective=Objective.COST,
            running=problem.running,
        )
        for site in sites(problem)
    ]
    local.start(contexts)
    search(
        [_RecordedSpace(context, recording) for context in contexts],
        incumbent,
        gap_fraction=1e-3,
        watch=Watch(stopped=lambda: len(recording.relaxations) > most_programs),
        polish=local.polish,
    )


def _middle(items: list[Item], most: int) -> list[Item]:
    first = max(0, (len(items) - most) // 2)
    return items[first : first + most]
