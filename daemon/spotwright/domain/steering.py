"""What steering a job is about: what is seen of its fleet, and what is done about it.

Times are seconds since training began; work is a share of the goal, 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from spotwright.domain.offer import Pool
from spotwright.domain.shrunk import ShrunkNode


class NodeState(StrEnum):
    """What a node of a fleet does."""

    STARTING = "starting"  # paid for, and not training yet
    TRAINING = "training"
    LEAVING = "leaving"  # trains, and a notice says that it will be taken away
    HINTED = "hinted"  # trains, and the cloud says that it may be taken away


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One worker as it is seen now."""

    node_id: str
    pool: Pool
    state: NodeState
    ready_s: float = 0.0  # when a starting one will train


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """Everything that is seen of a running job in one moment."""

    time_s: float
    done_fraction: float
    spent_usd: float
    nodes: tuple[NodeView, ...]
    asked: Mapping[Pool, int]  # workers that are wanted of each pool
    servers: Mapping[Pool, int] = field(default_factory=dict)
    unavailable: frozenset[Pool] = frozenset()  # pools that are known to give nothing now
    is_probed: bool = False  # nothing else is unavailable: no pool needs to cool down
    prices_usd_per_hour: Mapping[Pool, float] = field(default_factory=dict)
    pace_factor: float | None = None  # measured speed over the predicted one; None: not known
    shrunk: tuple[ShrunkNode, ...] = ()  # workers that have become less than was planned


class Trigger(StrEnum):
    """Why a job is looked at again."""

    STARTED = "started"
    INTERRUPTION_NOTICE = "interruption-notice"
    REBALANCE_HINT = "rebalance-hint"
    NODE_LOST = "node-lost"  # gone without a notice, or after it
    NODE_RESIZED = "node-resized"  # it has become less while it trains, or is whole again
    SHORT_GRANT = "short-grant"  # fewer nodes than asked for, for too long
    CAPACITY_BACK = "capacity-back"  # a pool that had failed may be asked again
    DRIFT = "drift"  # steps are faster or slower than the plan's interval
    PRICE_CHANGE = "price-change"
    DEADLINE_AT_RISK = "deadline-at-risk"
    CEILING_REACHED = "ceiling-reached"  # the budget will not do
    BUDGET_SPENT = "budget-spent"  # but for what giving the fleet back takes
    CHECK_DUE = "check-due"  # the time for which the last decision held is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often capacity was lost and came back while it was watched."""

    up_hours: float = 0.0
    down_hours: float = 0.0
    losses: int = 0
    returns: int = 0

    def passed(self, hours: float, *, was_up: bool, is_up: bool) -> "Weather":
        """Return the same after some time in which it was up or down, and how it ended."""
        return replace(
            self,
            up_hours=self.up_hours + (hours if was_up else 0.0),
            down_hours=self.down_hours + (0.0 if was_up else hours),
            losses=self.losses + (was_up and not is_up),
            returns=self.returns + (is_up and not was_up),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNow:
    """What a decision is made from."""

    time_s: float
    done_fraction: float
    spent_usd: float
    staying: Mapping[Pool, int]  # workers that train or start, without those that will be taken
    asked: Mapping[Pool, int] = field(default_factory=dict)  # workers that are wanted so far
    ready_in_s: float = 0.0  # until the last of them trains
    servers: Mapping[Pool, int] = field(default_factory=dict)
    down: frozenset[Pool] = frozenset()  # pools that give no more nodes for now
    is_probed: bool = False  # all others give nodes; else nobody knows before they do
    weather: Mapping[Pool, Weather] = field(default_factory=dict)
    capacity: Weather = field(default_factory=Weather)  # of all spot pools together
    prices_usd_per_hour: Mapping[Pool, float] = field(default_factory=dict)  # newer than offers
    pace_factor: float = 1.0  # measured speed over the predicted one
    is_spent: bool = False  # the budget, but for giving the fleet back in good order
    shrunk: tuple[ShrunkNode, ...] = ()  # of `staying`
    shrunk_share: float | None = None  # of the speed, in pace_factor already; None: as they are now


class Move(StrEnum):
    """What is decided."""

    KEEP = "keep"  # what runs is as good as anything: what is asked for stands
    CHANGE = "change"  # rent another fleet
    WAIT = "wait"  # ask for what is to come back, and go on with what is left
    GIVE_UP = "give-up"  # the goal can no longer be met; the fleet is the best that can be had


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """A decision, why it was made, and for how long it holds if nothing happens."""

    move: Move
    workers: Mapping[Pool, int]  # to have from now on
    servers: Mapping[Pool, int]
    reason: str
    holds_s: float  # then look again; infinite: until something happens
    goal_per_hour: float = 0.0  # predicted speed of these workers, nothing being interrupted
    usd_per_hour: float = 0.0
    finish_s: float | None = None  # expected, since training began; None: cannot be told
    cost_usd: float | None = None  # expected for the whole job, with what is spent
    gives_back: bool = False  # the budget is spent: nothing is wanted any more
    stands_in: bool = False  # on-demand workers among them make up for spot nodes
    leaves: tuple[str, ...] = ()  # nodes to be given up: others take their place
    pace_factor: float | None = None  # that it counts with; None: as it was seen
    shrunk_share: float = 1.0  # of the speed that nodes which have shrunk leave, in that pace
    share_with_all: float = 1.0  # that they would leave if none of them were given up

    def asks_anew(self, asked: Mapping[Pool, int], servers: Mapping[Pool, int]) -> bool:
        """Tell whether other nodes are wanted from now on than were asked for."""
        if self.move is Move.KEEP or not self.workers:
            return False
        return (dict(self.workers), dict(self.servers)) != (dict(asked), dict(servers))
