"""One simulated job, event by event, from its start to its goal.

What happens: capacity and prices change, notices come, nodes are taken, granted, and ready, the
policy asks to be woken, training goes on after a stop, the goal is reached. After each of these the
policy sees the job as a controller would and says which workers it wants. Those that it does not
want are given back first, so that the node maximum holds at any time; one that will be taken anyway
trains on until then. Nodes are paid from when they are granted, by the second.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView
from spotwright.perfmodel.interruption import checkpoint_s
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.fleet_speeds import FleetSpeeds
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.nodes import Ledger, Node, held
from spotwright.simulator.outcome import Moment, Outcome
from spotwright.simulator.policies.policy import Policy, Wish
from spotwright.simulator.squeeze import squeezed_shares
from spotwright.simulator.training import Training

_NEAR_S = 1e-6
_MOST_EVENTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A job in a market, ready to be run."""

    speeds: FleetSpeeds
    market: MarketTrace  # as noticed: what can be held without being told to leave
    prices_usd_per_hour: Mapping[Pool, float]  # where the market has no series
    servers: Mapping[Pool, int] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    horizon_s: float
    is_recorded: bool = False


def simulate(scene: Scene, policy: Policy, *, seed: int = 0) -> Outcome:
    """Run a job to its goal, or until there is no hope."""
    return _Run(scene, policy, seed).ended()


class _Run:
    """A run under way."""

    def __init__(self, scene: Scene, policy: Policy, seed: int) -> None:
        self._scene, self._policy, self._random = scene, policy, random.Random(seed)
        self._job = scene.speeds.choices.job
        conditions = scene.conditions
        self._restart_s = self._job.workload.spot.restart_s
        starts = conditions.start_s
        halt_s = sum(starts) / len(starts) if starts else self._restart_s
        self._training = Training(scene.speeds, scene.servers, halt_s=halt_s)
        self._save_s = checkpoint_s(self._job.workload)
        self._time_s = 0.0
        self._nodes: list[Node] = []
        self._ledger = Ledger()
        self._paid: Counter[Pool] = Counter(scene.servers)
        self._prices = dict(scene.prices_usd_per_hour)
        self._asked: dict[Pool, int] = {}
        self._wish = Wish({})
        self._zones: frozenset[str] = frozenset()
        self._counts = {"losses": 0, "interruptions": 0, "changes": 0, "grants": 0}
        self._moments: list[Moment] = []

    def ended(self) -> Outcome:
        """Run it."""
        self._prices_now()
        self._look()
        for _ in range(_MOST_EVENTS):
            self._advance(min(self._next_s(), self._scene.horizon_s))
            is_done = self._training.done >= 1 - 1e-9
            if is_done or self._wish.ends or self._time_s >= self._scene.horizon_s:
                return self._outcome(is_done=is_done)
            self._happen()
            self._look()
        raise RuntimeError("a simulated run does not come to an end")

    # Time

    def _next_s(self) -> float:
        time_s = min(self._wish.until_s, self._training.next_s(self._time_s))
        for pool in self._relevant():
            time_s = min(time_s, self._scene.market.next_change_s(pool, self._time_s))
        for node in self._nodes:
            time_s = min(time_s, node.leaves_s)
            if self._time_s < node.ready_s < time_s:
                time_s = node.ready_s
        return max(time_s, self._time_s + _NEAR_S)

    def _relevant(self) -> Iterable[Pool]:
        """Return the pools whose changes are noticed."""
        if self._scene.conditions.is_probed:
            return self._scene.market.pools
        return {*self._paid, *self._asked, *self._policy.watches}

    def _advance(self, to_s: float) -> None:
        self._ledger.pay(self._paid, self._prices, to_s - self._time_s)
        self._training.advance(self._time_s, to_s)
        self._time_s = to_s

    # What happens

    def _happen(self) -> None:
        self._prices_now()
        self._tighten()
        self._strike()
        self._take([node for node in self._nodes if node.leaves_s <= self._time_s])
        self._regroup()

    def _prices_now(self) -> None:
        for pool, series in self._scene.market.prices.items():
            self._prices[pool] = series.at(self._time_s)

    def _tighten(self) -> None:
        """Give notice to nodes that pools have no room for, or cut nodes down."""
        counts = held(self._nodes)
        for pool in counts:
            series = self._scene.market.capacity.get(pool)
            if series is None:
                continue
            room = series.at(self._time_s)
            if self._scene.conditions.squeeze is not None:
                self._squeeze(pool, room)
            elif counts[pool] > room:
                mine = self._held(pool)
                for node in self._random.sample(mine, counts[pool] - int(room)):
                    node.leaves_s = self._time_s + self._scene.conditions.notice_s

    def _strike(self) -> None:
        """Give notice to single nodes."""
        for pool in held(self._nodes):
            place = self._scene.market.strike_at(pool, self._time_s)
            mine = self._held(pool)
            if place is not None and place < len(mine):
                mine[place].leaves_s = self._time_s + self._scene.conditions.notice_s

    def _held(self, pool: Pool) -> list[Node]:
        """Return the nodes of a pool that no notice has come for, in the order they came."""
        return [n for n in self._nodes if n.pool == pool and n.leaves_s == math.inf]

    def _squeeze(self, pool: Pool, room: float) -> None:
        rule = self._scene.conditions.squeeze
        assert rule is not None
        mine = self._held(pool)
        shares = squeezed_shares(
            len(mine), room, rule=rule, floor=self._scene.conditions.floor_fraction
        )
        for node, share in zip(mine, shares, strict=False):
            node.share = share
        for node in mine[len(shares) :]:
            node.leaves_s = self._time_s + self._scene.conditions.notice_s

    def _take(self, lost: list[Node]) -> None:
        if not lost:
            return
        self._counts["losses"] += len(lost)
        self._counts["interruptions"] += 1
        gone = {node.node_id for node in lost}
        self._nodes = [node for node in self._nodes if node.node_id not in gone]
        if any(node.node_id in gone for node in self._training.members):
            conditions = self._scene.conditions
            told = conditions.saves_on_notice and self._wish.saves_on_notice
            saved = told and self._save_s <= conditions.notice_s
            self._training.lose(self._time_s, saved_before_s=self._save_s if saved else None)

    def _regroup(self) -> None:
        factor = self._scene.conditions.speed_factor
        self._training.regroup(self._nodes, self._time_s, speed_factor=factor)
        zones = frozenset(node.pool.zone for node in self._training.members)
        if zones and zones != self._zones:
            conditions = self._scene.conditions
            if self._zones and conditions.checkpoint_gb:
                usd = conditions.checkpoint_gb * conditions.move_usd_per_gb
                self._ledger.pay_move(usd * len(zones - self._zones))
            self._zones = zones
        self._paid = Counter(node.pool for node in self._nodes)
        self._paid.update(self._scene.servers)

    # What is decided

    def _look(self) -> None:
        wish = self._policy.decide(self._view())
        if wish.workers != self._asked:
            self._counts["changes"] += 1
            self._asked = dict(wish.workers)
        self._wish = wish
        stopped = self._give_back()
        granted = self._grant()
        if stopped or granted:
            self._regroup()
        if self._scene.is_recorded:
            self._record()

    def _view(self) -> JobView:
        conditions = self._scene.conditions
        return JobView(
            time_s=self._time_s,
            done_fraction=min(self._training.done, 1.0),
            spent_usd=self._ledger.total_usd,
            nodes=tuple(
                node.view(self._time_s, trains_s=trains_s) for node, trains_s in self._trains_s()
            ),
            asked=self._asked,
            servers=self._scene.servers,
            unavailable=self._unavailable(),
            is_probed=conditions.is_probed,
            prices_usd_per_hour={p: self._prices[p] for p in self._scene.market.prices},
            pace_factor=self._training.pace_factor,
        )

    def _trains_s(self) -> list[tuple[Node, float]]:
        """Return when each node trains, or has begun to."""
        training, stopped_s = self._training, self._training.stopped_until_s
        members = {node.node_id for node in training.members}
        joins_s = max((node.ready_s for node in self._nodes), default=0.0)
        if self._scene.speeds.is_asynchronous:
            return [(node, node.ready_s) for node in self._nodes]
        return [
            (node, stopped_s if node.node_id in members else max(joins_s, stopped_s))
            for node in self._nodes
        ]

    def _unavailable(self) -> frozenset[Pool]:
        """Return those pools that are watched and give nothing now, or less than was asked for."""
        counts, capacity = held(self._nodes), self._scene.market.capacity
        is_probed = self._scene.conditions.is_probed
        found = []
        for pool in capacity if is_probed else self._policy.watches:
            series = capacity.get(pool)
            if series is None:
                continue
            room, has = series.at(self._time_s), counts[pool]
            if room <= 0 or room <= has < self._asked.get(pool, 0):
                found.append(pool)
        return frozenset(found)

    def _give_back(self) -> bool:
        """Stop the nodes that are not wanted, those that do not train yet first."""
        surplus = held(self._nodes)
        surplus.subtract(self._asked)
        stopped = set()
        for node in sorted(self._nodes, key=lambda n: -n.ready_s):
            is_leaving = node.leaves_s < math.inf and node.ready_s <= self._time_s
            if surplus[node.pool] > 0 and not is_leaving:
                surplus[node.pool] -= 1
                stopped.add(node.node_id)
        self._nodes = [node for node in self._nodes if node.node_id not in stopped]
        return bool(stopped)

    def _grant(self) -> bool:
        counts = held(self._nodes)
        room = self._job.limits.max_nodes - len(self._nodes) - sum(self._scene.servers.values())
        granted = False
        for pool, wanted in sorted(self._asked.items()):
            series = self._scene.market.capacity.get(pool)
            most = math.inf if series is None else series.at(self._time_s) - counts[pool]
            number = int(max(min(wanted - counts[pool], most, room), 0))
            for _ in range(number):
                self._start(pool)
            room -= number
            granted = granted or number > 0
        return granted

    def _start(self, pool: Pool) -> None:
        starts = self._scene.conditions.start_s
        start_s = self._random.choice(starts) if starts else self._restart_s
        self._counts["grants"] += 1
        self._nodes.append(Node(f"n{self._counts['grants']}", pool, self._time_s + start_s))

    # What is told

    def _record(self) -> None:
        training = Counter(node.pool for node in self._training.members)
        everyone = Counter(node.pool for node in self._nodes)
        self._moments.append(
            Moment(
                self._time_s,
                dict(training),
                dict(everyone - training),
                min(self._training.done, 1.0),
                self._ledger.total_usd,
            )
        )

    def _outcome(self, *, is_done: bool) -> Outcome:
        if self._scene.is_recorded:
            self._record()
        ledger = self._ledger
        return Outcome(
            finish_s=self._time_s if is_done else None,
            deadline_s=self._job.goal.deadline_s,
            done_fraction=min(self._training.done, 1.0),
            cost_usd=ledger.total_usd,
            usd_by_pool=dict(ledger.usd),
            node_s_by_pool=dict(ledger.node_s),
            moved_usd=ledger.moved_usd,
            losses=self._counts["losses"],
            interruptions=self._counts["interruptions"],
            changes=self._counts["changes"],
            grants=self._counts["grants"],
            end_s=self._time_s,
            moments=tuple(self._moments),
        )
