"""Back ends inside OR-Tools on the sub-problems of real searches.

Relaxations are compared program by program. In a leaf, an integer program yields one fleet, of
which only a bound is known; enumerating what reduced costs leave yields every fleet worth looking
at, evaluated with the true model.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.back_ends import Solve, linear_back_ends, narrowed, quiet, whole_back_ends
from benchmarks.planner.jobs import FITTED, LARGE, loss_job, per_pool
from benchmarks.planner.markets import FIVE_REGIONS, ONE_REGION, bundled_problem
from benchmarks.planner.recorded import Leaf, record
from benchmarks.planner.timing import tell
from benchmarks.table import print_table
from spotwright.domain.workload import Contention
from spotwright.planner.linear_program import LinearProgram, Optimum
from spotwright.planner.point_enumeration import enumerate_fleets, reach
from spotwright.planner.problem import Problem

Floats = NDArray[np.float64]
Given = TypeVar("Given")
Programs = Sequence[tuple[LinearProgram, int]]  # with the number of columns that are whole

RELAXATIONS, LEAVES = 60, 25
_TOLERANCE = 1e-5  # of the largest cost: what counts as another optimum
_BROKEN = 1e-6  # what solvers let rows be off by
_IN_USE = "GLOP, from arrays, rows as they are needed"
_ENUMERATED = "enumeration and evaluation of all fleets left"


@dataclass(frozen=True, slots=True)
class _Timed:
    """How long a back end took for each program, and what it found."""

    milliseconds: Sequence[float]
    optima: Sequence[float]

    def cell(self, usual: "_Timed", scales: Sequence[float]) -> str:
        """Return the median, and how often the optimum is not that of the usual back end."""
        off = sum(
            not np.isclose(mine, theirs, rtol=0.0, atol=_TOLERANCE * scale, equal_nan=True)
            for mine, theirs, scale in zip(self.optima, usual.optima, scales, strict=True)
        )
        return f"{median(self.milliseconds):.2f}" + (f" ({off} differ)" if off else "")


@dataclass(frozen=True, slots=True)
class _Column:
    """The back ends on the programs of one market; the first is the usual one."""

    title: str
    scales: Sequence[float]  # of the objectives
    timed: Mapping[str, _Timed]

    def cell(self, name: str) -> str:
        """Return what one back end did."""
        return self.timed[name].cell(next(iter(self.timed.values())), self.scales)


def print_solvers() -> None:
    """Record, run and print."""
    tell("solvers")
    relaxations, leaves = [], []
    for name, problem in _problems().items():
        recording = record(problem).middle(relaxations=RELAXATIONS, leaves=LEAVES)
        relaxations.append(_relaxations(name, recording.relaxations))
        leaves.append(_leaves(name, recording.leaves))
    _print(f"Relaxations of {RELAXATIONS} boxes, median ms", relaxations)
    _print(f"Leaves ({LEAVES} or fewer), median ms", leaves)


def _relaxations(name: str, programs: Sequence[LinearProgram]) -> _Column:
    hot: dict[int, NDArray[np.bool_]] = {}  # by the number of rows: some have cuts

    def as_needed(program: LinearProgram) -> float:
        count = len(program.low)
        found = program.relaxed(hot.setdefault(count, np.arange(count) == 0))
        if not isinstance(found, Optimum):
            return math.nan
        return program.bound(found.multipliers)[0] - program.constant  # its point breaks rows a bit

    fractional = [(program, 0) for program in programs]
    timed = {_IN_USE: _timed(as_needed, programs), **_all(linear_back_ends(), fractional)}
    return _Column(f"{name}: {_shape(programs)}", _scales(programs), timed)


def _leaves(name: str, leaves: Sequence[Leaf]) -> _Column:
    fleets = median(leaf.fleets.shape[1] for leaf in leaves)
    programs = [leaf.program for leaf in leaves]
    whole = [(leaf.program, len(leaf.context.workers)) for leaf in leaves]
    timed = {_ENUMERATED: _timed(_enumerated, leaves), **_all(whole_back_ends(), whole)}
    timed = {name: _without_hopeless(one, programs) for name, one in timed.items()}
    return _Column(f"{name}: {_shape(programs)}, {fleets:.0f} fleets", _scales(programs), timed)


def _problems() -> dict[str, Problem]:
    job = loss_job(FITTED, LARGE, Contention.SPOTDNN)
    return {
        "one region": bundled_problem(job, ONE_REGION),
        "five regions": bundled_problem(per_pool(job, 4), FIVE_REGIONS),
    }


def _all(back_ends: Mapping[str, Solve], programs: Programs) -> dict[str, _Timed]:
    found = {}
    for name, solve in back_ends.items():
        with quiet():
            found[name] = _timed(partial(_solved, solve), programs)
        tell(f"  {sum(found[name].milliseconds) / 1e3:6.2f} s  {name}: {len(programs)} programs")
    return found


def _solved(solve: Solve, given: tuple[LinearProgram, int]) -> float:
    return solve(*given)


def _timed(solve: Callable[[Given], float], problems: Sequence[Given]) -> _Timed:
    milliseconds, optima = [], []
    for problem in problems:
        started_s = time.perf_counter()
        optima.append(solve(problem))
        milliseconds.append(1e3 * (time.perf_counter() - started_s))
    return _Timed(milliseconds, optima)


def _enumerated(leaf: Leaf) -> float:
    """Enumerate a leaf as the search does, evaluate, and return the best bound."""
    program, pools = leaf.program, len(leaf.context.workers)
    near = reach(
        leaf.reduced[:pools],
        leaf.slack,
        lower=program.lower[:pools],
        upper=program.upper[:pools],
    )
    nodes = (round(program.low[0]), round(program.high[0]))
    moves = enumerate_fleets(near, leaf.slack, node_range=nodes, most_counts=10**8)
    assert moves is not None
    leaf.context.values(moves.fleets())
    return float(_optima(program, leaf.fleets).min())


def _optima(program: LinearProgram, fleets: Floats) -> Floats:
    """Return the optimum of the program at each fleet, infinite where it breaks a row.

    One column is left, the speed of the fastest worker: the rows hold it between two values.
    """
    pools = len(fleets)
    assert len(program.objective) == pools + 1
    sums, per_speed = program.rows[:, :pools] @ fleets, program.rows[:, pools, None]
    low, high = program.low[:, None], program.high[:, None]
    free = per_speed[:, 0] == 0
    kept = ((sums >= low - _BROKEN) & (sums <= high + _BROKEN))[free].all(axis=0)
    ends = np.stack((low - sums, high - sums))[:, ~free] / per_speed[~free]
    least = ends.min(axis=0).max(axis=0, initial=program.lower[pools])
    most = ends.max(axis=0).min(axis=0, initial=program.upper[pools])
    worth = program.objective[pools]
    optima = program.objective[:pools] @ fleets + worth * (least if worth > 0 else most)
    return np.where(kept & (least <= most + _BROKEN), optima, np.inf)


def _without_hopeless(timed: _Timed, programs: Sequence[LinearProgram]) -> _Timed:
    """Count an optimum above 0 as none: it proves that the leaf holds nothing better."""
    values = zip(timed.optima, programs, strict=True)
    optima = [value if value + p.constant <= 0 else math.nan for value, p in values]
    return _Timed(timed.milliseconds, optima)


def _shape(programs: Sequence[LinearProgram]) -> str:
    rows, columns = (median(narrowed(p)[0].rows.shape[i] for p in programs) for i in (0, 1))
    return f"{rows:.0f} rows, {columns:.0f} columns"


def _scales(programs: Sequence[LinearProgram]) -> list[float]:
    return [float(np.abs(program.objective).max()) for program in programs]


def _print(title: str, columns: Sequence[_Column]) -> None:
    rows = [[name, *(column.cell(name) for column in columns)] for name in columns[0].timed]
    print_table(title, ["back end", *(column.title for column in columns)], rows)
