"""Whole fleets of asynchronous workers, what is true of them, and boxes around them.

Everything is read off the performance model; nothing is taken from the planner but its `Box`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.workload import Strategy
from spotwright.perfmodel.asp_ps import AspPsModel
from spotwright.perfmodel.contention import SharedServer, waits
from spotwright.perfmodel.fleets import FleetFigures
from spotwright.planner.asynchronous_boxes import AsynchronousSpace
from spotwright.planner.asynchronous_workers import Box
from spotwright.planner.context import Context
from tests.planner.contexts import contexts
from tests.planner.dice import Dice
from tests.planner.random_problems import draw

Floats = NDArray[np.float64]

FLEETS = 40  # of one number of workers
HALVINGS = 200
ROUNDING = 1e-12
RANGES = (
    "fastest", "share", "samples", "batch", "squares", "wait", "full_wait", "hazard", "pace",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleets:
    """Fleets of n workers, one entry or column per fleet, by the names that a box has."""

    context: Context
    x: Floats
    steps: Floats
    samples: Floats
    fastest: Floats
    share: Floats
    batch: Floats
    squares: Floats
    wait: Floats
    full_wait: Floats
    link: NDArray[np.intp]
    hazard: Floats
    pace: Floats
    figures: FleetFigures

    @property
    def lawful(self) -> NDArray[np.bool_]:
        """Where the loss law may be asked, and says something."""
        return self.figures.in_fitted_range & np.isfinite(self.figures.work_s)

    def inside(self, box: Box) -> NDArray[np.bool_]:
        """Tell which fleets a box holds."""
        kept = ((self.x >= box.lower[:, None]) & (self.x <= box.upper[:, None])).all(axis=0)
        kept &= (self.link >= box.link[0]) & (self.link <= box.link[1])
        for name in RANGES:
            (low, high), values = getattr(box, name), getattr(self, name)
            kept &= values >= low * (1 - ROUNDING) - ROUNDING
            kept &= values <= high * (1 + ROUNDING) + ROUNDING
        return kept


@cache
def space(seed: int) -> AsynchronousSpace | None:
    """Return the space of a context of a drawn problem; None: it has no room for any."""
    found = contexts(draw(Strategy.ASP_PS, seed))
    return AsynchronousSpace(Dice(seed, 11).pick(found)) if found else None


def roots(seeds: range) -> Iterator[tuple[Dice, Box, Fleets]]:
    """Yield root boxes with fleets of as many workers, and dice to go on with."""
    for seed in seeds:
        found = space(seed)
        for _, box in found.roots(np.inf) if found else ():
            dice = Dice(seed, box.n)
            assert found is not None
            yield dice, box, fleets(found.context, dice, box.n)


def root_bounds(seeds: range) -> Iterator[tuple[float, Fleets]]:
    """Yield what is said of each root by no solver, with fleets of as many workers."""
    for seed in seeds:
        found = space(seed)
        for bound, box in found.roots(np.inf) if found else ():
            assert found is not None
            yield bound, fleets(found.context, Dice(seed, box.n), box.n)


def fleets(context: Context, dice: Dice, n: int) -> Fleets:
    """Draw fleets of n workers; limits on single counts hold."""
    counts = np.array([_counts(context, dice, n) for _ in range(FLEETS)]).T
    model = context.evaluator.model
    assert isinstance(model, AspPsModel)
    speed = model.speed(counts)
    each = model.batch / speed.step_s
    samples = speed.group_samples_per_s.sum(axis=0)
    wait, full_wait, link = _queue(model, counts, n)
    fastest = np.where(counts > 0, each, 0.0).max(axis=0)
    figures = context.evaluate(counts)
    return Fleets(
        context=context,
        x=counts,
        steps=1 / speed.iteration_s,
        samples=samples,
        fastest=fastest,
        share=fastest / samples,
        batch=samples * speed.iteration_s,
        squares=(counts * each**2).sum(axis=0),
        wait=wait,
        full_wait=full_wait,
        link=link,
        hazard=context.hazard @ counts,
        pace=1 / figures.work_s,
        figures=figures,
    )


def _counts(context: Context, dice: Dice, n: int) -> Floats:
    """Return n workers, those beyond the pins in a few pools if these have room."""
    lower, upper = context.limits.lower, np.minimum(context.limits.upper, n)
    counts, liked = lower.copy(), dice.some(range(len(lower)), dice.whole(1, 3))
    for _ in range(n - round(float(lower.sum()))):
        room = np.flatnonzero(counts < upper).tolist()
        counts[dice.pick([i for i in liked if i in room] or room)] += 1
    return counts


def _queue(model: AspPsModel, counts: Floats, n: int) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the waits, those at servers that never idle, and the index of the shortest link."""
    links = sorted(model.servers)
    wait, full_wait = np.zeros((2, counts.shape[1]))
    shortest = np.where(counts > 0, model.visit_s, np.inf).min(axis=0)
    link = np.searchsorted(links, shortest) if links else np.zeros(counts.shape[1], dtype=np.intp)
    for i, visit_s in enumerate(links):
        server, mine = model.servers[visit_s], np.flatnonzero(link == i)
        if len(mine) and n > 1 and np.isfinite(server.rates[0]):
            wait[mine] = waits(counts[:, mine], model.lone_step_s(n), server)
            full_wait[mine] = _full_waits(counts[:, mine], model.lone_step_s(n), server, n)
    return wait, full_wait, link


def _full_waits(counts: Floats, lone_s: Floats, server: SharedServer, n: int) -> Floats:
    """Return the wait z at which sum x / (T + z) is what a full server can do, by halving."""
    most_steps = float(server.rates[n - 1])
    low, high = np.zeros(counts.shape[1]), np.full(counts.shape[1], n / most_steps)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        too_fast = (counts / (lone_s[:, None] + middle)).sum(axis=0) > most_steps
        low, high = np.where(too_fast, middle, low), np.where(too_fast, high, middle)
    idles = (counts / lone_s[:, None]).sum(axis=0) <= most_steps
    return np.where(idles, 0.0, (low + high) / 2)


def around(dice: Dice, box: Box, found: Fleets, i: int) -> Box:
    """Return a part of a box that holds fleet i, each range as wide as it comes."""
    ranges = {name: _range(dice, getattr(box, name), getattr(found, name)[i]) for name in RANGES}
    link, x = int(found.link[i]), found.x[:, i]
    links = (dice.pick((link, box.link[0])), dice.pick((link, box.link[1])))
    spare = dice.pick((0, 1, box.n))
    return replace(
        box.between(**ranges),
        link=links,
        lower=np.maximum(box.lower, x - spare),
        upper=np.minimum(box.upper, x + spare),
    )


def _range(dice: Dice, limits: tuple[float, float], value: float) -> tuple[float, float]:
    """Return a range from at most to at least a value, mostly within limits."""
    below, above = (max(0.0, value - limits[0]), max(0.0, limits[1] - value))
    if math.isinf(above):
        above = dice.pick((math.inf, value))
    parts = [dice.pick((0.0, 1.0, dice.between(0, 0.1), dice.between(0, 1))) for _ in range(2)]
    return value - parts[0] * below, value + (parts[1] and parts[1] * above)


def single(box: Box, found: Fleets, i: int) -> Box:
    """Return the part of a box in which every range is the value of fleet i."""
    ranges = {name: (getattr(found, name)[i],) * 2 for name in RANGES}
    x, link = found.x[:, i], int(found.link[i])
    return replace(box.between(**ranges), link=(link, link), lower=x, upper=x)
