"""One placement of workers with its parameter servers: what a search over counts runs in."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.perfmodel.fleets import FleetEvaluator, FleetFigures
from spotwright.perfmodel.interruption import checkpoint_s
from spotwright.perfmodel.step_model import WorkerClass
from spotwright.planner.limit_rows import LimitRows, limit_rows

Floats = NDArray[np.float64]

_ROUNDING = 1e-9
_WORTH_NARROWING = 20_000  # counts, below which making another evaluator takes longer
_MISSED = 1e15  # a score beyond every cost and duration


@dataclass(frozen=True, slots=True)
class Values:
    """The objective of fleets, infinite where a goal or a limit is broken."""

    objective: Floats
    cost_usd: Floats
    duration_s: Floats


class Context:
    """Worker pools that may be mixed, the servers they use, and what fleets of them are worth.

    Attributes:
        workers: one class per pool, in the order of the rows of `counts`.
        servers: those of every fleet.
        limits: what the job allows of these pools.
        price: dollars per hour of one node.
        hazard: interruptions per hour of one node.
        server_events: events per hour that take servers.
        traffic: dollars for traffic between zones, per step of one worker.
        switching: dollars for each node beyond those that run already.
    """

    def __init__(
        self,
        job: JobSpec,
        workers: Sequence[WorkerClass],
        servers: Sequence[NodeGroup],
        *,
        objective: Objective,
        running: RunningFleet,
    ) -> None:
        """Prepare for fleets of these pools."""
        offers = [worker.group.offer for worker in workers if worker.group.offer]
        self.job, self.workers, self.servers = job, tuple(workers), tuple(servers)
        self.objective = objective
        self.limits: LimitRows = limit_rows(job.limits, offers, servers)
        self.most_workers = self._most_workers()
        self.evaluator = FleetEvaluator(job, workers, servers, most_workers=self.most_workers)
        self.price = np.array([offer.price_usd_per_hour for offer in offers])
        self.servers_usd_per_hour = sum(server.usd_per_hour or 0.0 for server in servers)
        self.hazard = self.evaluator.exposure.hazards
        self.server_events = self.evaluator.exposure.server_per_hour
        self.traffic = self.evaluator.traffic.usd_per_step
        self._running = running
        self.running = np.array([float(running.nodes.get(offer.pool, 0)) for offer in offers])
        self.switching = self.price * (running.switching_s / 3600 if running.nodes else 0.0)
        self.save_s, self.restart_s = checkpoint_s(job.workload), job.workload.spot.restart_s
        # What a fleet exactly at its goal may be off by: for evaluations and bounds alike.
        self.deadline_s = (job.goal.deadline_s or math.inf) * (1 + _ROUNDING)
        self.budget_usd = (job.goal.budget_usd or math.inf) * (1 + _ROUNDING)

    @property
    def least_workers(self) -> int:
        """The smallest fleet that the pins leave."""
        return max(1, int(self.limits.lower.sum()))

    @property
    def costs_matter(self) -> bool:
        """Whether a dearer fleet can be worse."""
        return self.objective is Objective.COST or math.isfinite(self.budget_usd)

    @property
    def has_room(self) -> bool:
        """Whether the limits leave room for any worker beside the pins."""
        room = min(float(self.limits.high[0]), float(self.limits.upper.sum()))
        return room >= self.least_workers

    def evaluate(self, counts: Floats) -> FleetFigures:
        """Evaluate whole fleets, goals and limits aside; the cost of switching is included."""
        figures = self._figures(counts)
        if self.switching.any():
            new = np.maximum(counts - self.running[:, None], 0.0)
            figures.cost_usd[:] += self.switching @ new
        return figures

    def _figures(self, counts: Floats) -> FleetFigures:
        """Evaluate with the pools that are in use alone, where that pays."""
        used = np.flatnonzero(counts.any(axis=1))
        if counts.size < _WORTH_NARROWING or len(used) > len(counts) / 2:
            return self.evaluator.evaluate(counts)
        workers = [self.workers[i] for i in used]
        narrow = FleetEvaluator(self.job, workers, self.servers, most_workers=self.most_workers)
        return narrow.evaluate(counts[used])

    def narrowed(self, pools: NDArray[np.intp]) -> "Context":
        """Return the same with some of the pools."""
        workers = [self.workers[i] for i in pools]
        return Context(
            self.job, workers, self.servers, objective=self.objective, running=self._running
        )

    def values(self, counts: Floats, *, better_than: float = math.inf) -> Values:
        """Return what fleets are worth; those not better than some value may be infinite too."""
        figures = self.evaluate(counts)
        chosen = figures.cost_usd if self.objective is Objective.COST else figures.duration_s
        hopeful = np.flatnonzero(
            (chosen < better_than)
            & figures.in_fitted_range
            & figures.fits_memory
            & (figures.duration_s <= self.deadline_s)
            & (figures.cost_usd <= self.budget_usd)
        )
        allowed = hopeful[self.limits.allow(counts[:, hopeful])]
        objective = np.full(counts.shape[1], np.inf)
        objective[allowed] = chosen[allowed]
        return Values(objective, figures.cost_usd, figures.duration_s)

    def scores(self, counts: Floats) -> Floats:
        """Return values that also rank fleets which miss a goal, by how much they miss it."""
        figures = self.evaluate(counts)
        chosen = figures.cost_usd if self.objective is Objective.COST else figures.duration_s
        ended = np.isfinite(figures.duration_s)  # others the loss law says nothing about
        late = np.where(ended, figures.duration_s, 0.0) / self.deadline_s
        dear = np.where(ended, figures.cost_usd, 0.0) / self.budget_usd
        missed = np.maximum(late, dear)
        score = np.where(missed <= 1, chosen, _MISSED * missed)
        allowed = self.limits.allow(counts) & figures.in_fitted_range & figures.fits_memory
        return np.where(allowed & ended, score, np.inf)

    def estimate(self, fleet: Floats) -> tuple[float, float]:
        """Return what a fleet is worth, and by what factor it misses a goal, 1 if it does not."""
        figures = self.evaluate(fleet[:, None])
        cost, duration = float(figures.cost_usd[0]), float(figures.duration_s[0])
        missed = max(1.0, cost / self.budget_usd, duration / self.deadline_s)
        return cost if self.objective is Objective.COST else duration, missed

    def caps(self, target: float) -> tuple[float, float]:
        """Return the dollars and the seconds that a fleet better than `target` stays within."""
        if self.objective is Objective.COST:
            return min(target, self.budget_usd), self.deadline_s
        return self.budget_usd, min(target, self.deadline_s)

    def counts_of(self, nodes: Mapping[Pool, int]) -> Floats | None:
        """Return nodes by pool as counts; None: a pool is not among these."""
        found = [float(nodes.get(w.group.offer.pool, 0)) for w in self.workers if w.group.offer]
        return np.array(found) if sum(found) == sum(nodes.values()) else None

    def fleet(self, counts: Floats) -> Fleet:
        """Return counts as a fleet, its groups in a fixed order."""
        groups = [
            NodeGroup(
                role=worker.group.role,
                instance_type=worker.group.instance_type,
                node_count=round(count),
                gpus_per_node=worker.group.gpus_per_node,
                offer=worker.group.offer,
            )
            for worker, count in zip(self.workers, counts.tolist(), strict=True)
            if round(count) > 0
        ]
        groups.sort(key=lambda g: (g.instance_type.name, str(g.offer.pool) if g.offer else ""))
        return Fleet(nodes=(*groups, *self.servers))

    def _most_workers(self) -> int:
        room = min(self.limits.high[0], float(self.limits.upper.sum()))
        return max(1, int(room))
