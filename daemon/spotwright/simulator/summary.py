"""What many runs say together, and how sure that is."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

from spotwright.domain.offer import Market
from spotwright.simulator.outcome import Outcome

_Z = 1.959964  # of 95 %


class Bounds(NamedTuple):
    """A figure with its 95 % bounds; infinite where nothing is known of them."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Means over runs, with 95 % bounds."""

    runs: int
    cost_usd: Bounds
    finish_s: float | None  # mean of those that finished
    finish_p95_s: float | None  # None: more than one run in twenty did not finish
    misses: int
    miss_fraction: Bounds  # Wilson's bounds
    unfinished: int
    losses: float  # nodes taken away, per run
    interruptions: float
    changes: float
    on_demand_fraction: float  # of the node hours


def summarised(outcomes: Sequence[Outcome]) -> Summary:
    """Sum up the runs of one policy."""
    finished = sorted(o.finish_s for o in outcomes if o.finish_s is not None)
    misses = sum(outcome.is_late for outcome in outcomes)
    rank = math.ceil(0.95 * len(outcomes)) - 1
    return Summary(
        runs=len(outcomes),
        cost_usd=mean_with_bounds([outcome.cost_usd for outcome in outcomes]),
        finish_s=fmean(finished) if finished else None,
        finish_p95_s=finished[rank] if rank < len(finished) else None,
        misses=misses,
        miss_fraction=share_with_bounds(misses, len(outcomes)),
        unfinished=len(outcomes) - len(finished),
        losses=fmean(outcome.losses for outcome in outcomes),
        interruptions=fmean(outcome.interruptions for outcome in outcomes),
        changes=fmean(outcome.changes for outcome in outcomes),
        on_demand_fraction=_on_demand_fraction(outcomes),
    )


def mean_with_bounds(values: Sequence[float]) -> Bounds:
    """Return a mean with Student's 95 % bounds; one value by itself tells none."""
    mean, count = fmean(values), len(values)
    if count < 2:
        return Bounds(-math.inf, mean, math.inf)
    half = float(stdtrit(count - 1, 0.975)) * stdev(values) / math.sqrt(count)
    return Bounds(mean - half, mean, mean + half)


def share_with_bounds(count: int, total: int) -> Bounds:
    """Return a share with Wilson's 95 % bounds."""
    share, square = count / total, _Z**2 / total
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return Bounds(max(0.0, middle - half), share, min(1.0, middle + half))


def _on_demand_fraction(outcomes: Sequence[Outcome]) -> float:
    seconds: Counter[Market] = Counter()
    for outcome in outcomes:
        for pool, node_s in outcome.node_s_by_pool.items():
            seconds[pool.market] += int(node_s)
    return seconds[Market.ON_DEMAND] / max(seconds.total(), 1)
