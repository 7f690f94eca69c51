"""Which market each run of a study meets."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from spotwright.domain.offer import Pool
from spotwright.simulator.campaign import Campaign
from spotwright.simulator.market import MarketTrace, fleet_capacity
from spotwright.simulator.series import Series


class Draw(Protocol):
    """Draws a market for each run; the same one for the same run."""

    def market(self, run: int, length_s: float, *, notice_s: float) -> MarketTrace:
        """Return the market of a run, as noticed: what can be held without being told to leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedWindows:
    """Windows of one market, their beginnings drawn evenly over what was observed."""

    trace: MarketTrace
    seed: int
    _noticed: dict[float, MarketTrace] = field(default_factory=dict, compare=False, repr=False)

    def market(self, run: int, length_s: float, *, notice_s: float) -> MarketTrace:
        """Return a window."""
        if notice_s not in self._noticed:
            self._noticed[notice_s] = self.trace.noticed(notice_s)
        start_s = _start_s(f"{self.seed}/{run}", self.trace.length_s, length_s)
        return self._noticed[notice_s].window(start_s, length_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnCampaigns:
    """For each run, one of some campaigns for every spot pool, all at the same place of theirs.

    Series of one campaign stay beside each other in time, so that what happens together in it does
    so in the run.
    """

    campaigns: tuple[Campaign, ...]
    pools: tuple[Pool, ...]
    most_nodes: int
    seed: int

    def market(self, run: int, length_s: float, *, notice_s: float) -> MarketTrace:
        """Return a window of a market made of campaigns."""
        drawn = random.Random(f"{self.seed}/{run}")
        place = drawn.random()
        capacity = {}
        for pool in sorted(self.pools):
            campaign = drawn.choice(self.campaigns)
            latest_s = max(campaign.nodes.end_s - length_s, 0.0)
            window = campaign.nodes.window(place * latest_s, length_s + notice_s)
            capacity[pool] = fleet_capacity(
                window, target_nodes=campaign.target_nodes, most_nodes=self.most_nodes
            ).least_within(notice_s)
        return MarketTrace(capacity=capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPrices:
    """Another draw's markets, at the prices of windows whose beginnings are drawn evenly."""

    draw: Draw
    prices: Mapping[Pool, Series]
    seed: int

    def market(self, run: int, length_s: float, *, notice_s: float) -> MarketTrace:
        """Return a market at the prices of one window."""
        priced = MarketTrace(prices=self.prices)
        start_s = _start_s(f"{self.seed}/prices/{run}", priced.length_s, length_s)
        market = self.draw.market(run, length_s, notice_s=notice_s)
        return replace(market, prices=priced.window(start_s, length_s).prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnHazards:
    """Losses drawn from the hazards that a plan is made with.

    A common share of them takes a pool as a whole, which then gives nothing for a while; the others
    take single nodes, in whose place the pool gives new ones.
    """

    hazards_per_hour: Mapping[Pool, float]  # of one node
    common_fraction: float
    most_nodes: int
    seed: int
    away_s: float = 3600.0  # mean time until a pool that was taken gives nodes again

    def market(self, run: int, length_s: float, *, notice_s: float) -> MarketTrace:
        """Return what was drawn."""
        drawn = random.Random(f"{self.seed}/{run}")
        capacity, strikes = {}, {}
        for pool, hazard in sorted(self.hazards_per_hour.items()):
            per_s = hazard / 3600
            shocks = self._shocks(drawn, per_s * self.common_fraction, length_s)
            capacity[pool] = shocks.least_within(notice_s)
            rate = per_s * (1 - self.common_fraction) * self.most_nodes
            strikes[pool] = tuple(_strikes(drawn, rate, length_s, self.most_nodes))
        return MarketTrace(capacity=capacity, strikes=strikes)

    def _shocks(self, drawn: random.Random, per_s: float, length_s: float) -> Series:
        all_nodes = float(self.most_nodes)
        points, time_s = [(0.0, all_nodes)], _wait_s(drawn, per_s)
        while time_s < length_s:
            back_s = time_s + _wait_s(drawn, 1 / self.away_s)
            points += [(time_s, 0.0), (back_s, all_nodes)]
            time_s = back_s + _wait_s(drawn, per_s)
        return Series.of([point for point in points if point[0] < length_s], end_s=length_s)


def _start_s(seed: str, observed_s: float, length_s: float) -> float:
    """Return where a window begins that ends before what was observed does."""
    return random.Random(seed).random() * max(observed_s - length_s, 0.0)


def _strikes(
    drawn: random.Random, per_s: float, length_s: float, most_nodes: int
) -> list[tuple[float, int]]:
    found, time_s = [], _wait_s(drawn, per_s)
    while time_s < length_s:
        found.append((time_s, drawn.randrange(most_nodes)))
        time_s += _wait_s(drawn, per_s)
    return found


def _wait_s(drawn: random.Random, per_s: float) -> float:
    return drawn.expovariate(per_s) if per_s > 0 else math.inf
