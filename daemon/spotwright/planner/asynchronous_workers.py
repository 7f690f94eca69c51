"""What is known of n asynchronous workers, and the boxes their fleets are cut into."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.job import TargetKind
from spotwright.domain.workload import Contention, NoiseScaleLaw, SpotdnnLoss
from spotwright.perfmodel.asp_ps import AspPsModel
from spotwright.perfmodel.convergence import Progress, updates_to_goal
from spotwright.planner.context import Context
from spotwright.planner.queueing_bound import QueueingBound

Floats = NDArray[np.float64]
Range = tuple[float, float]

EPS = 1e-9


@dataclass(frozen=True, slots=True)
class Box:
    """Fleets of n workers between these values."""

    n: int
    lower: Floats
    upper: Floats
    fastest: Range
    share: Range  # of the fastest worker, in the samples
    samples: Range
    batch: Range
    squares: Range
    wait: Range
    full_wait: Range
    link: tuple[int, int]  # indices of the shortest visit, fastest first
    hazard: Range
    pace: Range  # part of the work done in a second

    def between(self, **ranges: Range) -> "Box":
        """Return the part of the box between other values."""
        return replace(self, **ranges)  # type: ignore[arg-type]


class Line(NamedTuple):
    """value + slope * S - sum x slower / n: steps/s at most."""

    value: float
    slope: float
    slower: Floats  # by class: what its link takes away at least

    def at(self, s: float, x: Floats) -> float:
        """Return the bound for n workers x whose lone rates sum to s."""
        return self.value + self.slope * s - float(x @ self.slower) / float(x.sum())


class AsynchronousWorkers:
    """The workers of one context, as any number of them behaves.

    Attributes:
        context: where they stand.
        batch: samples per step of a worker of each class.
        feed_s: seconds in which it is fed one step's samples.
        visit_s: seconds it needs alone to move all parameters one way.
        links: the visits there are, shortest first.
        per_step: time is counted by steps (a loss, steps), not by samples.
        spotdnn: the loss law, if it is spotDNN's.
        queueing: workers wait for each other at the servers.
        uses_batch: boxes hold the weighted batch.
    """

    def __init__(self, context: Context) -> None:
        """Prepare the rates of every class."""
        model = context.evaluator.model
        assert isinstance(model, AspPsModel)
        self.context, self.model = context, model
        self.batch, self.feed_s = model.batch[:, 0], model.feed_s[:, 0]
        self.visit_s = model.visit_s[:, 0]
        self.pools = len(context.workers)
        target = context.job.goal.target
        self.per_step = target.kind in (TargetKind.LOSS, TargetKind.STEPS)
        law = context.job.workload.convergence if target.kind is TargetKind.LOSS else None
        self.spotdnn = law if isinstance(law, SpotdnnLoss) else None
        self.links = sorted(model.servers)
        self._link_index = np.searchsorted(self.links, self.visit_s * (1 - EPS))
        fastest = model.servers[self.links[0]] if self.links else None
        self.queueing = fastest is not None and math.isfinite(fastest.rates[0])
        law_of_batch = isinstance(law, SpotdnnLoss | NoiseScaleLaw)
        # Samples/s are at most steps/s times the weighted batch, and a queue bounds the steps.
        self.uses_batch = law_of_batch or (self.queueing and not self.per_step)
        serving = context.job.workload.parameter_serving
        self._crowding = serving is not None and serving.contention is Contention.SPOTDNN
        self._lone: dict[int, Floats] = {}  # by n where crowding slows everyone down, else by 0
        self._rates_at: dict[int, tuple[float, float]] = {}
        self._steps_at: dict[int, float] = {}
        self._queues: dict[int, QueueingBound] = {}
        self._last_rates: tuple[tuple[int, Range], tuple[Floats, Floats]] | None = None

    def lone_s(self, n: int) -> Floats:
        """Return the step of one worker of each class among n, waiting left out."""
        key = n if self._crowding else 0
        if key not in self._lone:
            self._lone[key] = self.model.lone_step_s(n)
        return self._lone[key]

    def queues_at(self, n: int) -> bool:
        """Tell whether n workers wait for each other."""
        return self.queueing and n > 1

    def queue(self, n: int) -> QueueingBound:
        """Return how fast n workers at the servers can be."""
        if n not in self._queues:
            servers = [self.model.servers[link] for link in self.links]
            self._queues[n] = QueueingBound(servers, n)
        return self._queues[n]

    def updates(self, n: int, batch: float, coefficient: float) -> float:
        """Return j (or W, samples) at a weighted batch and an R."""
        if self.spotdnn is not None:  # asked for a dozen times per box
            return max(self.raw_updates(n, batch, coefficient), 1.0)
        job = self.context.job
        progress = Progress(
            weighted_batch=np.array([batch]),
            worker_count=np.array([float(n)]),
            coefficient=np.array([coefficient]),
            asynchronous=True,
        )
        updates = float(updates_to_goal(job.workload, job.goal.target, progress)[0])
        return updates if self.per_step else updates * batch

    def raw_updates(self, n: int, batch: float, coefficient: float) -> float:
        """Return j of spotDNN's law, which says less than 1 of goals that are reached at once."""
        law = self.spotdnn
        assert law is not None
        crowd = math.sqrt((coefficient + law.c4) * n)
        above_floor = self.context.job.goal.target.value - law.floor_loss
        return (law.c2 * batch + law.c3) * crowd / above_floor - law.c1

    def spread_coefficient(self, n: int) -> float:
        """Return the least R of any n workers: the fastest there is among n - 1 of the slowest."""
        if self.spotdnn is None or n == 1 or self.queueing:
            return 0.0
        samples = self.batch / np.maximum(self.lone_s(n), self.feed_s)
        fastest, slowest = float(samples.max()), float(samples.min())
        least = least_coefficient(n, fastest, fastest + (n - 1) * slowest, 0.0)
        return max(least, self.spotdnn.coefficient_range[0])

    def best_rates(self, n: int) -> tuple[float, float]:
        """Return the largest rate of a worker, and the least price per rate."""
        key = n if self._crowding else 0
        if key not in self._rates_at:
            seconds = np.maximum(self.lone_s(n), self.feed_s)
            rates = (1.0 if self.per_step else self.batch) / seconds
            self._rates_at[key] = (float(rates.max()), float((self.context.price / rates).min()))
        return self._rates_at[key]

    def most_steps(self, n: int) -> float:
        """Return the largest steps/s of n workers."""
        if n not in self._steps_at:
            rates = 1 / np.maximum(self.lone_s(n), self.feed_s)
            order = np.argsort(-rates, kind="stable")
            upper = np.minimum(self.context.limits.upper, n)[order]
            taken = np.diff(np.minimum(np.cumsum(upper), n), prepend=0.0)
            most = float(rates[order] @ taken)
            if self.queues_at(n):
                most = min(most, float(self.queue(n).capacity.max()))
            self._steps_at[n] = most
        return self._steps_at[n]

    def rates(self, box: Box) -> tuple[Floats, Floats]:
        """Return the least and the largest steps/s of one worker of each class."""
        key = box.n, box.wait
        if self._last_rates is None or self._last_rates[0] != key:  # asked for ten times per box
            lone_s = self.lone_s(box.n)
            slow = 1 / np.maximum(lone_s + box.wait[1], self.feed_s)
            fast = 1 / np.maximum(lone_s + box.wait[0], self.feed_s)
            self._last_rates = key, (slow, fast)
        return self._last_rates[1]

    def coefficient(self, box: Box) -> float:
        """Return the least R in a box."""
        if self.spotdnn is None:
            return 0.0
        least = least_coefficient(box.n, box.fastest[1], box.samples[0], box.squares[0])
        if box.n > 1:
            least = max(least, (1 - min(1.0, box.share[1])) * math.sqrt(box.n / (box.n - 1)))
        return max(least, self.spotdnn.coefficient_range[0])

    def tangent(self, box: Box, s: float) -> Line:
        """Return a line in S and x above the speed at every link of the box, near S = s.

        Which link is fastest depends on S; where there are several, the line joins the highest of
        their tangents at either end of what S can be. A fleet's shortest link is no longer than
        any other of its links, so it loses at least the mean of what they all lose.
        """
        z, links = box.full_wait[0], slice(box.link[0], box.link[1] + 1)
        rates = 1 / (self.lone_s(box.n)[box.upper > 0] + z)
        low, high = box.n * float(rates.min()), box.n * float(rates.max())
        s = min(max(s, low), high)  # beyond, no fleet of the box is
        speeds, slopes = self.queue(box.n).speeds(s, z, links)
        values = speeds - slopes * s
        if len(values) == 1 or high <= low * (1 + EPS):
            best = int(np.argmax(speeds))
            return Line(float(values[best]), float(slopes[best]), np.zeros(self.pools))
        at_low, at_high = values + slopes * low, values + slopes * high
        slope = (float(at_high.max()) - float(at_low.max())) / (high - low)
        losses = np.minimum(at_low.max() - at_low, at_high.max() - at_high)
        losses = np.minimum.accumulate(losses)  # no more than with any shorter link
        slower = losses[np.clip(self._link_index - box.link[0], 0, len(losses) - 1)]
        return Line(float(at_low.max()) - slope * low, slope, slower)

    def link_of(self, x: Floats) -> int:
        """Return the index of the shortest visit among the pools in use."""
        shortest = float(self.visit_s[x > 1e-6].min())
        return int(np.searchsorted(self.links, shortest * (1 - EPS)))


def least_coefficient(n: int, fastest: float, samples: float, squares: float) -> float:
    """Return the least R of n workers, none faster than `fastest`, at least so many samples/s."""
    if n == 1:
        return 0.0
    share = min(1.0, fastest / samples)
    by_share = (1 - share) * math.sqrt(n / (n - 1))
    at = max(samples, squares / fastest)
    by_squares = 1 - 2 * fastest / at + squares / at**2
    return max(by_share, math.sqrt(max(by_squares, 0.0)))
