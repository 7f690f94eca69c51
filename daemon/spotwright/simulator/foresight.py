"""The least that a one-node job can cost for somebody who knows the market in advance: a bound.

Time is cut into steps. In each the job waits, runs on spot in one of the zones, or on demand; to
enter a zone or a market costs a restart, paid and without progress, and a move between zones its
fee. With V the least cost from a step on:

    V(step, work, place) = min over to of  price_to D + fee + V(step + 1, work + [to is entered]
                                           restart - D, to)

A spot zone can be used in a step in which it gives a node at any time, so that no run that has to
live with whole steps beats it by more than what a step is worth.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.offer import Pool
from spotwright.simulator.series import Series

Floats = NDArray[np.float64]
_NEVER = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class OneNodeJob:
    """A job that runs on one node, of the same speed in every pool."""

    work_hours: float
    deadline_hours: float
    restart_hours: float  # that entering takes
    spot_usd_per_hour: float
    on_demand_usd_per_hour: float
    move_usd: float = 0.0  # fee of entering another zone than the last one


def foresight_usd(
    capacity: Mapping[Pool, Series], job: OneNodeJob, *, restart_steps: int = 4
) -> float:
    """Return the least cost of a job for somebody who knows the capacity of each pool in advance.

    A restart is cut into `restart_steps`: more are finer and slower.
    """
    step_hours = job.restart_hours / restart_steps
    steps, works = int(job.deadline_hours / step_hours), math.ceil(job.work_hours / step_hours)
    up = np.array([_steps_up(series, steps, step_hours) for series in capacity.values()])
    hourly_usd = [job.spot_usd_per_hour] * len(up) + [job.on_demand_usd_per_hour]
    prices = [usd * step_hours for usd in hourly_usd]
    value = np.full((len(up) + 2, works + restart_steps + 1), _NEVER)  # last two: demand, waits
    value[:, 0] = 0.0
    for step in reversed(range(steps)):
        value = _before(
            value, up[:, step], prices, restart_steps=restart_steps, move_usd=job.move_usd
        )
    return float(value[-1, works])


def _before(
    value: Floats,
    up: NDArray[np.bool_],
    prices: Sequence[float],
    *,
    restart_steps: int,
    move_usd: float,
) -> Floats:
    """Return the values one step earlier."""
    places = len(prices)
    best = np.broadcast_to(value[places], value.shape).copy()  # to wait
    for to in range(places):
        if to < len(up) and not up[to]:
            continue
        staying = prices[to] + _shifted(value[to], -1)
        entering = prices[to] + _shifted(value[to], restart_steps - 1)
        fees = np.full((places + 1, 1), move_usd if to < len(up) else 0.0)
        fees[[to, places]] = 0.0  # who waits is taken to be where it wants to be
        np.minimum(best, entering + fees, out=best)
        np.minimum(best[to], staying, out=best[to])
    best[:, 0] = 0.0
    return best


def _shifted(values: Floats, steps: int) -> Floats:
    """Return the value at so much more work; more than there is counts as never done."""
    if steps < 0:
        return np.concatenate([values[:1], values[:steps]])
    return np.concatenate([values[steps:], np.full(steps, _NEVER)]) if steps else values


def _steps_up(series: Series, steps: int, step_hours: float) -> NDArray[np.bool_]:
    edges = np.arange(steps + 1) * step_hours * 3600
    times, values = np.array(series.times_s), np.array(series.values) > 0
    up = values[np.maximum(np.searchsorted(times, edges[:-1], side="right") - 1, 0)]
    for time_s in times[values]:  # those that begin within a step
        place = int(time_s / (step_hours * 3600))
        if place < steps:
            up[place] = True
    return np.asarray(up)
