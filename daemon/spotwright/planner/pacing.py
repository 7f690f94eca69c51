"""When to wait for spot capacity, when to buy on demand, and when to go back.

A job has so many hours left and so much work, counted in hours on the sure fleet. In each moment it
is in one of three modes: it waits with what it has, it runs on spot capacity, or on the sure fleet,
which nobody takes away. Spot capacity is there or not; it is lost at `losses_per_hour` and returns
at `returns_per_hour`. To enter a mode takes `restart_hours`, paid and without progress. With V the
least expected cost, D the length of a step, and s_a, p_a speed and price of mode a:

    V(hours, work, mode, there) = min over a of
        p_a D + E V(hours - D, work + [a is entered] s_a restart_hours - s_a D, a, there')
    V(0, work, ., .) = penalty * work

Spot capacity can be entered only while it is there, and who loses it waits. This dynamic program is
the optimal policy where times between changes have no memory; the rules for deadlines of the
literature (greedy, uniform progress) are policies of the same problem, hence never better there.
The penalty alone would let interpolation cut corners at the very end. Whoever asks keeps the time
that the sure fleet needs, which holds for any market: `usecases.steer_job` has that safety net.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 480  # from now to the deadline
_PENALTY = 1e3  # of an hour of work that is left at the deadline, in hours of the sure fleet
_ROOM = 1.05  # of the table beyond the hours that are left, for restarts


class Mode(IntEnum):
    """What a job does with its time."""

    WAIT = 0
    SPOT = 1
    SURE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a mode costs and brings, in units of the sure fleet."""

    speed: float  # work per hour
    price: float  # per hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """How spot capacity comes and goes, and what entering a mode takes."""

    losses_per_hour: float
    returns_per_hour: float
    restart_hours: float

    def __post_init__(self) -> None:
        if min(self.losses_per_hour, self.returns_per_hour, self.restart_hours) < 0:
            raise ValueError(f"rates and times must not be negative, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a job stands."""

    hours_left: float
    work_hours: float  # on the sure fleet
    mode: Mode
    spot_is_there: bool


class Pacing:
    """The policy for a job whose deadline is at most `longest_hours` away."""

    def __init__(self, *, wait: Pace, spot: Pace, market: Market, longest_hours: float) -> None:
        """Work out what to do in every case; equal questions are worked out once.

        Figures are rounded to a few per cent, which changes what is best by far less.
        """
        self._step_hours = _rounded_up(longest_hours) / _STEPS
        self._speeds = (_rounded(wait.speed), _rounded(spot.speed), 1.0)
        self._table = _table(
            step_hours=self._step_hours,
            speeds=self._speeds,
            prices=(_rounded(wait.price), _rounded(spot.price), 1.0),
            rates=(_rounded(market.losses_per_hour), _rounded(market.returns_per_hour)),
            restart_hours=_rounded(market.restart_hours),
        )

    def best(self, standing: Standing) -> Mode:
        """Return the mode to be in from now on."""
        if standing.work_hours <= 0:
            return standing.mode
        step = min(max(0, int(standing.hours_left / self._step_hours)), _STEPS)
        table = self._table.until(step)[step, standing.mode, int(standing.spot_is_there)]
        work = math.ceil(standing.work_hours / self._step_hours - 1e-9)
        return Mode(int(table[min(work, len(table) - 1)]))

    def hours_until_change(self, standing: Standing, mode: Mode) -> float:
        """Return for how long `mode` stays best while the market stays as it is."""
        here = int(standing.spot_is_there)
        speed = self._speeds[mode]
        step = min(max(0, int(standing.hours_left / self._step_hours)), _STEPS)
        choices = self._table.until(step)
        work = standing.work_hours / self._step_hours
        most = choices.shape[3] - 1
        passed = np.arange(1, step)
        left = work - passed * speed
        passed, left = passed[left > 0], left[left > 0]
        places = np.minimum(np.ceil(left - 1e-9).astype(np.intp), most)
        changed = np.flatnonzero(choices[step - passed, mode, here, places] != mode)
        if changed.size:
            return float(passed[changed[0]]) * self._step_hours
        if len(passed) < step - 1:
            return math.inf  # done before
        return step * self._step_hours


def _rounded(value: float) -> float:
    """Round to about 3 %, so that tables can be used again."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    return float(2 ** (round(math.log2(value) * 24) / 24))


def _rounded_up(hours: float) -> float:
    """Round up to about 6 %."""
    return float(2 ** (math.ceil(math.log2(max(hours, 1e-3)) * 12) / 12))


class _Table:
    """The best mode by steps left, mode, whether spot is there, and steps of work.

    It is worked out from the deadline back, as far as was asked.
    """

    def __init__(
        self,
        *,
        step_hours: float,
        speeds: tuple[float, float, float],
        prices: tuple[float, float, float],
        rates: tuple[float, float],
        restart_hours: float,
    ) -> None:
        works = math.ceil(_STEPS * _ROOM + restart_hours / step_hours) + 1
        self._step_hours, self._prices = step_hours, prices
        self._changes = tuple(1 - math.exp(-rate * step_hours) for rate in rates)
        self._moves = [
            (
                _Shift(works, -speed),
                _Shift(works, speed * (restart_hours / step_hours - 1)),
            )
            for speed in speeds
        ]
        work = np.arange(works) * step_hours
        self._value = np.broadcast_to(_PENALTY * work, (3, 2, works)).copy()
        self._choices = np.zeros((_STEPS + 1, 3, 2, works), dtype=np.int8)
        self._choices[0] = Mode.SURE
        self._known_steps = 0

    def until(self, steps: int) -> NDArray[np.int8]:
        """Return the table, of which so many steps from the deadline are worked out."""
        lost, back = self._changes
        for step in range(self._known_steps + 1, steps + 1):
            self._value = _before(
                self._value,
                self._moves,
                self._prices,
                step_hours=self._step_hours,
                changes=(lost, back),
                out=self._choices[step],
            )
            self._value[:, :, 0] = 0.0
            self._known_steps = step
        return self._choices


_table = lru_cache(maxsize=256)(_Table)


class _Shift:
    """Values at work that is more or less by a fixed number of steps, interpolated."""

    def __init__(self, works: int, steps: float) -> None:
        whole = math.floor(steps)
        self._share, self._first = steps - whole, max(whole, 0)
        self._before = min(max(-whole, 0), works)
        self._pad = works + self._before + self._first + 1

    def __call__(self, values: Floats) -> Floats:
        # Slices of a padded copy: indexing by arrays takes three times as long.
        if self._share == 0 and self._first == self._before == 0:
            return values
        works = values.shape[-1]
        padded = np.empty((*values.shape[:-1], self._pad))
        padded[..., : self._before] = values[..., :1]
        padded[..., self._before : self._before + works] = values
        padded[..., self._before + works :] = values[..., -1:]
        low = padded[..., self._first : self._first + works]
        high = padded[..., self._first + 1 : self._first + works + 1]
        return np.asarray(low + self._share * (high - low))


def _before(
    value: Floats,
    moves: list[tuple[_Shift, _Shift]],
    prices: tuple[float, float, float],
    *,
    step_hours: float,
    changes: tuple[float, float],
    out: NDArray[np.int8],
) -> Floats:
    """Return the values one step earlier; write the best modes to `out`.

    Few calls on large arrays: each costs more than what it computes.
    """
    lost, back = changes
    rents = [price * step_hours for price in prices]
    gone, there = value[:: Mode.SURE, 0], value[:: Mode.SURE, 1]  # waiting; on the sure fleet
    expected = np.empty((2, *value.shape[1:]))  # of these two, by whether spot is there then
    expected[:, 0] = back * there + (1 - back) * gone
    expected[:, 1] = (1 - lost) * there + lost * gone
    waits = rents[Mode.WAIT] + moves[Mode.WAIT][0](expected[0])
    kept = (1 - lost) * value[Mode.SPOT, 1] + lost * gone[0]
    spot, sure = np.empty((3, value.shape[2])), np.empty(value.shape)
    stay, enter = moves[Mode.SPOT]
    spot[:] = rents[Mode.SPOT] + enter(kept)
    spot[Mode.SPOT] = rents[Mode.SPOT] + stay(kept)
    stay, enter = moves[Mode.SURE]
    sure[:] = rents[Mode.SURE] + enter(expected[1])
    sure[Mode.SURE] = rents[Mode.SURE] + stay(expected[1])
    best = np.repeat(waits[None], 3, axis=0)
    # The first of the best, as by argmin, which takes five times as long here.
    out[:, 0] = Mode.WAIT
    np.copyto(out[:, 1], spot < best[:, 1])
    np.minimum(best[:, 1], spot, out=best[:, 1])
    out[sure < best] = Mode.SURE
    return np.minimum(best, sure, out=best)
