"""The nodes of a simulated job, and what is seen and paid of them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spotwright.domain.offer import Pool
from spotwright.domain.steering import NodeState, NodeView


@dataclass(slots=True, eq=False)
class Node:
    """One worker that is paid for."""

    node_id: str
    pool: Pool
    ready_s: float
    leaves_s: float = math.inf  # a notice says so
    share: float = 1.0  # of its speed

    def view(self, time_s: float, *, trains_s: float) -> NodeView:
        """Return what is seen of it; it trains from `trains_s`."""
        if self.leaves_s < math.inf:
            state = NodeState.LEAVING
        else:
            state = NodeState.TRAINING if trains_s <= time_s else NodeState.STARTING
        return NodeView(node_id=self.node_id, pool=self.pool, state=state, ready_s=trains_s)


@dataclass(slots=True)
class Ledger:
    """What was paid, by pool."""

    usd: Counter[Pool] = field(default_factory=Counter)
    node_s: Counter[Pool] = field(default_factory=Counter)
    moved_usd: float = 0.0
    total_usd: float = 0.0

    def pay(self, counts: Mapping[Pool, int], prices: Mapping[Pool, float], seconds: float) -> None:
        """Pay for nodes for a while in which neither they nor prices change."""
        for pool, count in counts.items():
            usd = count * prices[pool] * seconds / 3600
            self.usd[pool] += usd  # type: ignore[assignment]  # Counter holds any number
            self.node_s[pool] += count * seconds  # type: ignore[assignment]
            self.total_usd += usd

    def pay_move(self, usd: float) -> None:
        """Pay for moving a checkpoint."""
        self.moved_usd += usd
        self.total_usd += usd


def held(nodes: Iterable[Node]) -> Counter[Pool]:
    """Count the nodes of each pool that no notice has come for."""
    return Counter(node.pool for node in nodes if node.leaves_s == math.inf)
