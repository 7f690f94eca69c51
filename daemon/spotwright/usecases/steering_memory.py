"""What the controller of a job remembers of its fleet from look to look."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import JobView, Move, NodeState, Steering, Trigger, Weather


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringMemory:
    """What is known of a job from before; enough for another controller to go on."""

    time_s: float | None = None  # of the last look; None: there was none
    nodes: Mapping[str, tuple[Pool, NodeState]] = field(default_factory=dict)
    down: frozenset[Pool] = frozenset()
    cooling: Mapping[Pool, float] = field(default_factory=dict)  # until when
    failures: Mapping[Pool, tuple[int, float]] = field(default_factory=dict)  # how many, the last
    short_since: Mapping[Pool, float] = field(default_factory=dict)
    weather: Mapping[Pool, Weather] = field(default_factory=dict)
    capacity: Weather = field(default_factory=Weather)
    drift_since_s: float | None = None
    standing: frozenset[Trigger] = frozenset()  # risks that were told and are still there
    # Of the last decision:
    move: Move | None = None
    change_s: float = float("-inf")
    check_s: float = float("inf")
    goal_per_hour: float = 0.0
    usd_per_hour: float = 0.0
    prices: Mapping[Pool, float] = field(default_factory=dict)
    pace_factor: float = 1.0
    stands_in: bool = False  # its on-demand nodes stand in for spot nodes
    shrunk: frozenset[tuple[str, str]] = frozenset()  # nodes that had become less, and what is left
    shrunk_share: float = 1.0  # of the speed, in `pace_factor`
    left: frozenset[str] = frozenset()  # nodes that were to be given up


def decided(memory: SteeringMemory, steering: Steering, view: JobView) -> SteeringMemory:
    """Return what is remembered after a decision."""
    changes = steering.move in (Move.CHANGE, Move.GIVE_UP)
    stands_in = memory.stands_in or _has_more_on_demand(steering.workers, view.asked)
    return replace(
        memory,
        move=steering.move,
        change_s=view.time_s if changes else memory.change_s,
        check_s=view.time_s + steering.holds_s,
        goal_per_hour=steering.goal_per_hour,
        usd_per_hour=steering.usd_per_hour,
        prices=dict(view.prices_usd_per_hour),
        pace_factor=_pace(memory, steering, view),
        shrunk_share=steering.shrunk_share,
        left=memory.left | {*steering.leaves},
        stands_in=steering.stands_in and stands_in,
        drift_since_s=None,
        short_since={} if changes else memory.short_since,
    )


def _pace(memory: SteeringMemory, steering: Steering, view: JobView) -> float:
    if steering.pace_factor is not None:
        return steering.pace_factor
    return memory.pace_factor if view.pace_factor is None else view.pace_factor


def _has_more_on_demand(workers: Mapping[Pool, int], asked: Mapping[Pool, int]) -> bool:
    """Tell whether on-demand nodes are wanted that were not: those of the plan are no makeshift."""
    return any(
        count > asked.get(pool, 0)
        for pool, count in workers.items()
        if pool.market is Market.ON_DEMAND
    )


def counted_from_later(memory: SteeringMemory, by_s: float) -> SteeringMemory:
    """Return the same where time is counted from a later moment."""

    def earlier(time_s: float | None) -> float | None:
        return None if time_s is None else time_s - by_s

    return replace(
        memory,
        time_s=earlier(memory.time_s),
        cooling={pool: until - by_s for pool, until in memory.cooling.items()},
        failures={pool: (n, last_s - by_s) for pool, (n, last_s) in memory.failures.items()},
        short_since={pool: since - by_s for pool, since in memory.short_since.items()},
        drift_since_s=earlier(memory.drift_since_s),
        change_s=memory.change_s - by_s,
        check_s=memory.check_s - by_s,
    )
