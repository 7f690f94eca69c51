"""The exact plan for functions: every memory size, every number of them, every sensible server.

    minimise    duration * (servers + memory * functions * usd_per_gib_s)   or   duration
    subject to  duration <= deadline,  cost <= budget
                memory in 128, 129, ..., 10240 MB,  functions in 1, 2, ..., max_nodes

Duration and cost are those of `predict`; restarts make both jump with memory. More memory is never
slower, so that of all sizes from a to b none is faster than b and none has a lower price than a.
Sizes are cut into strips; the strips whose bound beats the best of all strips' ends are
looked at one by one. Where a law says that memory slows a function down, each size is a strip.

Of servers, one that needs as long per step, costs as much and is taken away as often as another, or
more, can be no part of a better fleet; in what zone it stands does not matter to functions.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.plan import Objective
from spotwright.domain.workload import ServerlessLaw
from spotwright.perfmodel.convergence import updates_to_goal
from spotwright.perfmodel.fleets import fleet_progress
from spotwright.perfmodel.interruption import checkpoint_s, event_rates, stopped_run_s
from spotwright.perfmodel.parameter_server import server_demand
from spotwright.perfmodel.serverless import (
    ServerlessModel,
    functions_usd_per_s,
    lifecycles,
    s_per_sample_by_memory,
    serverless_law,
)
from spotwright.planner.best_value import best_value
from spotwright.planner.context import Values
from spotwright.planner.limit_rows import limit_rows
from spotwright.planner.problem import Problem, SearchProgress, Solution, Watch

Floats = NDArray[np.float64]

LEAST_MEMORY_MB, MOST_MEMORY_MB = 128, 10_240  # AWS Lambda
_STRIPS = 128  # each spans 3.5 % of its sizes
_BLOCK_FLEETS = 1 << 17  # a megabyte per array stays in the cache
_ROUNDING = 1e-9


class FunctionContext:
    """One choice of servers, and what functions in front of them are worth."""

    def __init__(self, job: JobSpec, server: NodeGroup, *, objective: Objective) -> None:
        """Prepare for functions of any size and number."""
        self.server, self.objective = server, objective
        self._job, self.law = job, serverless_law(job.workload)
        self._demand = server_demand(job.workload, [server], job.limits.network)
        self._usd_per_s = (server.usd_per_hour or 0.0) / 3600
        self._stops_per_hour = float(event_rates(job.workload, [server]).per_hour[0])
        self._deadline_s = job.goal.deadline_s or math.inf
        self._budget_usd = job.goal.budget_usd or math.inf

    @property
    def burden(self) -> tuple[float, float, float]:
        """What servers bring upon every fleet, each the less the better."""
        return self._usd_per_s, self._stops_per_hour, self._demand.link_demand_s

    def values(self, memory_mb: Floats, functions: Floats) -> Values:
        """Return what fleets are worth; functions have a speed at these sizes."""
        return self._values(memory_mb, functions, paid_mb=memory_mb)

    def bounds(self, low_mb: Floats, high_mb: Floats, functions: Floats) -> Floats:
        """Return what no size from `low_mb` to `high_mb` improves on."""
        return self._values(high_mb, functions, paid_mb=low_mb).objective

    def _values(self, memory_mb: Floats, functions: Floats, *, paid_mb: Floats) -> Values:
        duration_s = self._duration_s(memory_mb, functions)
        own = functions_usd_per_s(self.law, memory_mb=paid_mb, functions=functions)
        cost_usd = duration_s * (self._usd_per_s + own)
        chosen = cost_usd if self.objective is Objective.COST else duration_s
        allowed = duration_s <= self._deadline_s * (1 + _ROUNDING)
        allowed &= cost_usd <= self._budget_usd * (1 + _ROUNDING)
        return Values(np.where(allowed, chosen, np.inf), cost_usd, duration_s)

    def _duration_s(self, memory_mb: Floats, functions: Floats) -> Floats:
        job, counts = self._job, functions[None, :]
        speed = ServerlessModel(job.workload, memory_mb, self._demand).speed(counts)
        progress = fleet_progress(job.workload, counts, speed)
        training_s = updates_to_goal(job.workload, job.goal.target, progress) * speed.iteration_s
        beside = lifecycles(
            job.workload, memory_mb=memory_mb, functions=functions, training_s=training_s
        )
        return stopped_run_s(
            training_s + beside.total_s,
            self._stops_per_hour,
            save_s=checkpoint_s(job.workload),
            restart_s=job.workload.spot.restart_s,
        )


class FunctionGrid:
    """Sizes and numbers of functions, the sizes cut into strips.

    Attributes:
        sizes_mb: those at which functions have a speed, ascending.
        functions: their numbers.
    """

    def __init__(self, law: ServerlessLaw, sizes_mb: Floats, functions: Floats) -> None:
        """Cut the sizes."""
        s_per_sample = s_per_sample_by_memory(law, sizes_mb)
        known = np.isfinite(s_per_sample)
        never_slower = bool((np.diff(s_per_sample[known]) <= 0).all())
        self.sizes_mb, self.functions = sizes_mb[known], functions
        self._ends = np.arange(len(self.sizes_mb))
        if len(self.sizes_mb) and never_slower and law.storage_mbps_per_mb >= 0:
            cuts = np.geomspace(self.sizes_mb[0], self.sizes_mb[-1], _STRIPS)
            self._ends = np.unique(np.searchsorted(self.sizes_mb, cuts))
        self._starts = np.append(0, self._ends[:-1] + 1)

    def ends(self) -> tuple[Floats, Floats]:
        """Return the largest size of each strip with each number of functions."""
        return self._each(self._ends)

    def promising(self, context: FunctionContext, target: float) -> Iterator[tuple[Floats, Floats]]:
        """Yield, in blocks, all fleets of the strips that may hold one as good as `target`."""
        (low_mb, functions), (high_mb, _) = self._each(self._starts), self._each(self._ends)
        bounds = context.bounds(low_mb, high_mb, functions)
        kept = np.flatnonzero(np.isfinite(bounds) & (bounds <= target * (1 + _ROUNDING)))
        starts, ends = self._starts[kept % len(self._ends)], self._ends[kept % len(self._ends)]
        block = np.cumsum(ends - starts + 1) // _BLOCK_FLEETS
        for part in np.unique(block):
            mine = block == part
            lengths = (ends - starts + 1)[mine]
            before = np.cumsum(lengths) - lengths
            index = np.arange(lengths.sum()) + np.repeat(starts[mine] - before, lengths)
            yield self.sizes_mb[index], np.repeat(functions[kept[mine]], lengths)

    def _each(self, indices: NDArray[np.intp]) -> tuple[Floats, Floats]:
        sizes = self.sizes_mb[indices]
        return np.tile(sizes, len(self.functions)), np.repeat(self.functions, len(sizes))


@dataclass(slots=True)
class _Best:
    """The best fleet so far; of equal ones, that which is better by the other measure."""

    rank: tuple[float, float] = (math.inf, math.inf)
    cost_usd: float = math.inf
    duration_s: float = math.inf
    fleet: Fleet | None = None

    def offer(self, context: FunctionContext, memory_mb: Floats, functions: Floats) -> None:
        values = context.values(memory_mb, functions)
        rank, best = best_value(values, context.objective)
        if math.isfinite(rank[0]) and rank < self.rank:
            self.rank = rank
            self.cost_usd = float(values.cost_usd[best])
            self.duration_s = float(values.duration_s[best])
            group = FunctionGroup(
                memory_mb=round(memory_mb[best]), function_count=round(functions[best])
            )
            self.fleet = Fleet(nodes=(context.server,), functions=group)


def solve_serverless(
    problem: Problem, *, objective: Objective = Objective.COST, watch: Watch | None = None
) -> Solution:
    """Find the functions and servers that cost least within the deadline, or are fastest.

    Both goals hold in either case, as they do for nodes.
    """
    job = problem.job
    contexts = [
        FunctionContext(job, server, objective=objective) for server in _server_choices(problem)
    ]
    grid = FunctionGrid(
        serverless_law(job.workload),
        np.arange(LEAST_MEMORY_MB, MOST_MEMORY_MB + 1.0),
        np.arange(1.0, job.limits.max_nodes + 1),
    )
    return search_functions(_undominated(contexts), grid, watch=watch or Watch())


def search_functions(
    contexts: Sequence[FunctionContext], grid: FunctionGrid, *, watch: Watch
) -> Solution:
    """Find the best fleet of a grid with one of these servers."""
    best, blocks, complete = _Best(), 0, True
    for context, memory_mb, functions in _blocks(contexts, grid, best):
        if watch.stopped():
            complete = False
            break
        best.offer(context, memory_mb, functions)
        blocks += 1
        found = best.rank[0] if best.fleet else None
        watch.report(SearchProgress(best=found, lower_bound=0.0, box_count=blocks))
    return Solution(
        fleet=best.fleet,
        cost_usd=best.cost_usd,
        duration_s=best.duration_s,
        lower_bound=best.rank[0] if complete else 0.0,
        complete=complete,
        box_count=blocks,
    )


def _blocks(
    contexts: Sequence[FunctionContext], grid: FunctionGrid, best: _Best
) -> Iterator[tuple[FunctionContext, Floats, Floats]]:
    """Yield the ends of all strips, then what may still be better than the best of them."""
    if not len(grid.sizes_mb):
        return
    for context in contexts:
        yield (context, *grid.ends())
    for context in contexts:
        for memory_mb, functions in grid.promising(context, best.rank[0]):
            yield context, memory_mb, functions


def _server_choices(problem: Problem) -> Iterator[NodeGroup]:
    """Yield the servers that the limits allow; functions count as no nodes."""
    limits = problem.job.limits
    counted = Limits(
        max_nodes=limits.max_nodes,
        max_vcpus=limits.max_vcpus,
        max_usd_per_hour=limits.max_usd_per_hour,
    )
    counts = np.arange(1, limits.max_parameter_servers + 1)
    for offer in problem.server_offers:
        allowed = limit_rows(counted, [offer], ()).allow(counts[None, :].astype(np.float64))
        for count in counts[allowed].tolist():
            yield NodeGroup(
                role=Role.PS,
                instance_type=offer.instance_type,
                node_count=count,
                gpus_per_node=0.0,
                offer=offer,
            )


def _undominated(contexts: Sequence[FunctionContext]) -> list[FunctionContext]:
    """Drop servers that others match or beat in every respect."""
    kept: list[FunctionContext] = []
    for context in sorted(contexts, key=lambda c: c.burden):
        beaten = (all(a <= b for a, b in zip(k.burden, context.burden, strict=True)) for k in kept)
        if not any(beaten):
            kept.append(context)
    return kept
