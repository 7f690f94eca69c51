"""Rivals that know two fleets only: a cheap one of spot nodes, and a sure one without.

    on-demand         the sure fleet, from beginning to end
    greedy            spot whenever it is there, else nothing, until only the sure fleet, entered
                      now, keeps the deadline; then that, to the end
    uniform progress  spot whenever it is there; without it, the sure fleet while less is done than
                      t C / R, until 2 restarts more than that are done; and the same safety net

with C the time that the sure fleet needs for all of it and R the deadline: the policies of "Can't
Be Late" (NSDI 2024), which neither move between pools nor change fleets.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView
from spotwright.simulator.policies.policy import Wish

_STEP_S = 60.0  # the shortest time between two looks that nothing calls for


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoFleets:
    """What these rivals know of a job."""

    spot: Mapping[Pool, int]
    sure: Mapping[Pool, int]
    sure_s: float  # that the sure fleet needs for the whole goal
    deadline_s: float
    restart_s: float

    @property
    def watches(self) -> frozenset[Pool]:
        """The pools of the spot fleet."""
        return frozenset(self.spot)

    def slack_s(self, view: JobView) -> float:
        """Return how much more time may pass until only the sure fleet is in time."""
        left_s = (1 - view.done_fraction) * self.sure_s
        return self.deadline_s - view.time_s - left_s - 2 * self.restart_s

    def is_there(self, view: JobView) -> bool:
        """Tell whether the spot fleet can be had, or is held."""
        return not any(pool in view.unavailable for pool in self.spot)


@dataclass(slots=True)
class OnDemand:
    """Never takes what can be taken away."""

    fleets: TwoFleets

    @property
    def watches(self) -> frozenset[Pool]:
        """The pools of its spot fleet."""
        return self.fleets.watches

    def decide(self, _view: JobView) -> Wish:
        """Want the sure fleet."""
        return Wish(self.fleets.sure)


@dataclass(slots=True)
class Greedy:
    """Takes spot nodes until the last moment."""

    fleets: TwoFleets
    _in_net: bool = False

    @property
    def watches(self) -> frozenset[Pool]:
        """The pools of its spot fleet."""
        return self.fleets.watches

    def decide(self, view: JobView) -> Wish:
        """Want spot nodes, or wait for them."""
        slack_s = self.fleets.slack_s(view)
        self._in_net = self._in_net or slack_s <= 0
        if self._in_net:
            return Wish(self.fleets.sure)
        wanted = self.fleets.spot if self.fleets.is_there(view) else {}
        return Wish(wanted, view.time_s + max(slack_s, _STEP_S))


@dataclass(slots=True)
class UniformProgress:
    """Keeps to the line from nothing done to all done at the deadline."""

    fleets: TwoFleets
    _in_net: bool = False
    _on_sure: bool = False

    @property
    def watches(self) -> frozenset[Pool]:
        """The pools of its spot fleet."""
        return self.fleets.watches

    def decide(self, view: JobView) -> Wish:
        """Want spot nodes, the sure fleet, or nothing."""
        fleets, slack_s = self.fleets, self.fleets.slack_s(view)
        self._in_net = self._in_net or slack_s <= 0
        if self._in_net:
            return Wish(fleets.sure)
        is_there = fleets.is_there(view)
        ahead_s = self._ahead_s(view)
        if self._on_sure and ahead_s < self._hysteresis_s:
            return Wish(fleets.sure, self._caught_up_s(view, ahead_s))
        self._on_sure = not is_there and ahead_s < 0
        if self._on_sure:
            return Wish(fleets.sure, self._caught_up_s(view, ahead_s))
        if is_there:
            return Wish(fleets.spot, view.time_s + max(slack_s, _STEP_S))
        falls_back_s = ahead_s * fleets.deadline_s / fleets.sure_s
        return Wish({}, view.time_s + max(min(falls_back_s, slack_s), _STEP_S))

    @property
    def _hysteresis_s(self) -> float:
        """Work that must be done ahead of the line before the sure fleet is left."""
        return 2 * self.fleets.restart_s * self.fleets.sure_s / self.fleets.deadline_s

    def _ahead_s(self, view: JobView) -> float:
        """Return the work done beyond the line, in seconds of the sure fleet."""
        expected = view.time_s / self.fleets.deadline_s
        return (view.done_fraction - expected) * self.fleets.sure_s

    def _caught_up_s(self, view: JobView, ahead_s: float) -> float:
        gains = 1 - self.fleets.sure_s / self.fleets.deadline_s
        if gains <= 0:
            return math.inf
        return view.time_s + max((self._hysteresis_s - ahead_s) / gains, _STEP_S)
