"""A market over time: how many nodes each pool gives, and at which price."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from spotwright.domain.offer import Pool
from spotwright.simulator.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketTrace:
    """What pools give over time. Pools without a series give all that is asked, at their price."""

    capacity: Mapping[Pool, Series] = field(default_factory=dict)  # nodes that can be held
    prices: Mapping[Pool, Series] = field(default_factory=dict)  # $/h of one node
    # Single nodes that are taken: when, and the which; nobody is, where there are fewer.
    strikes: Mapping[Pool, tuple[tuple[float, int], ...]] = field(default_factory=dict)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All that something may happen to."""
        return tuple(dict.fromkeys([*self.capacity, *self.prices, *self.strikes]))

    def next_change_s(self, pool: Pool, time_s: float) -> float:
        """Return when something next happens to a pool."""
        found = math.inf
        for series in (self.capacity.get(pool), self.prices.get(pool)):
            if series is not None:
                found = min(found, series.next_change_s(time_s))
        strikes = self.strikes.get(pool, ())
        place = bisect_right(strikes, (time_s, math.inf))
        return min(found, strikes[place][0]) if place < len(strikes) else found

    def strike_at(self, pool: Pool, time_s: float) -> int | None:
        """Return which node of a pool is taken at this very time; None: none."""
        strikes = self.strikes.get(pool, ())
        place = bisect_left(strikes, (time_s, -1))
        is_now = place < len(strikes) and strikes[place][0] == time_s
        return strikes[place][1] if is_now else None

    @property
    def length_s(self) -> float:
        """How long all of it was observed."""
        series = [*self.capacity.values(), *self.prices.values()]
        return min((each.end_s for each in series), default=math.inf)

    def window(self, start_s: float, length_s: float) -> "MarketTrace":
        """Return what follows on a time, counted from it; strikes are drawn, not observed."""
        return MarketTrace(
            capacity={p: s.window(start_s, length_s) for p, s in self.capacity.items()},
            prices={p: s.window(start_s, length_s) for p, s in self.prices.items()},
        )

    def noticed(self, notice_s: float) -> "MarketTrace":
        """Return what can be held without being told to leave: less, as long as a notice before.

        Notices then come where this falls, and nodes are taken `notice_s` later.
        """
        least = {pool: series.least_within(notice_s) for pool, series in self.capacity.items()}
        return MarketTrace(capacity=least, prices=self.prices, strikes=self.strikes)


def fleet_capacity(series: Series, *, target_nodes: float, most_nodes: float) -> Series:
    """Return a campaign that asked for `target_nodes` as capacity for fleets of any size.

    What share of the target could be had is taken to hold for `most_nodes`, rounded down.
    """
    return series.mapped(lambda nodes: math.floor(nodes / target_nodes * most_nodes + 1e-9))
