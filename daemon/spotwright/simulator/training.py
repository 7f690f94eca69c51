"""The progress of a simulated job.

Asynchronous workers train as they come and go: what a lost one did is in the parameters already. A
synchronous group trains together: who joins or leaves it stops all for a restart, and a node that
is lost takes the work since the last checkpoint with it. A notice that is longer than it takes to
save leaves only that much to lose. Nodes that start wait for each other and join together.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from spotwright.domain.offer import Pool
from spotwright.simulator.fleet_speeds import STANDING_STILL, FleetSpeeds
from spotwright.simulator.nodes import Node


class Training:
    """What is done, and how fast it goes on."""

    def __init__(self, speeds: FleetSpeeds, servers: Mapping[Pool, int], *, halt_s: float) -> None:
        self._speeds, self._servers, self._halt_s = speeds, servers, halt_s
        self._speed = STANDING_STILL
        self._factor = 1.0
        self._since_s = 0.0  # trained since the group came together
        self.members: tuple[Node, ...] = ()
        self.stopped_until_s = 0.0
        self.done = 0.0

    def rate(self, time_s: float) -> float:
        """Return the share of the goal that is done in a second."""
        return 0.0 if time_s < self.stopped_until_s else self._speed.goal_per_s * self._factor

    @property
    def pace_factor(self) -> float | None:
        """The measured speed over the predicted one; None where nothing trains."""
        return self._factor if self._speed.goal_per_s else None

    def advance(self, from_s: float, to_s: float) -> None:
        """Train for a while in which nothing changes."""
        trained_s = to_s - max(from_s, min(self.stopped_until_s, to_s))
        if trained_s > 0:
            self.done += trained_s * self._speed.goal_per_s * self._factor
            self._since_s += trained_s

    def next_s(self, time_s: float) -> float:
        """Return when it goes on after a stop, or when it will be done."""
        if time_s < self.stopped_until_s:
            return self.stopped_until_s
        rate = self.rate(time_s)
        return time_s + (1 - self.done) / rate if rate > 0 else math.inf

    def lose(self, time_s: float, *, saved_before_s: float | None) -> None:
        """Go back to the last checkpoint, because a member is gone.

        Args:
            time_s: when it went.
            saved_before_s: how long before a notice let it be saved; None: it did not.
        """
        if self._speeds.is_asynchronous:
            return
        since_s = self._since_s
        every_s = self._speed.save_every_s
        lost_s = since_s if math.isinf(every_s) else since_s % every_s
        if saved_before_s is not None:
            lost_s = min(lost_s, saved_before_s)
        self.done = max(self.done - lost_s * self._speed.goal_per_s * self._factor, 0.0)
        self._since_s = 0.0
        self.stopped_until_s = time_s + self._halt_s

    def regroup(self, nodes: Sequence[Node], time_s: float, *, speed_factor: float) -> None:
        """Go on with those nodes that are ready."""
        members = tuple(self._joined(nodes, time_s))
        if members != self.members:
            self._changed(members, time_s)
        self._factor = speed_factor * self._share(members)

    def _joined(self, nodes: Sequence[Node], time_s: float) -> list[Node]:
        ready = [node for node in nodes if node.ready_s <= time_s]
        if self._speeds.is_asynchronous or len(ready) == len(nodes):
            return ready
        known = {node.node_id for node in self.members}
        return [node for node in ready if node.node_id in known]

    def _changed(self, members: tuple[Node, ...], time_s: float) -> None:
        together = not self._speeds.is_asynchronous and self.members and members
        if together and self._since_s > 0:  # trained before: it has to stop for those who change
            self.stopped_until_s = max(self.stopped_until_s, time_s + self._halt_s)
        self._since_s = 0.0
        self.members = members
        counts = Counter(node.pool for node in members)
        self._speed = self._speeds.of(counts, self._servers)

    def _share(self, members: Sequence[Node]) -> float:
        """Return what is left of the speed where nodes are cut down."""
        if all(node.share == 1.0 for node in members):
            return 1.0
        if not self._speeds.is_asynchronous:
            return min(node.share for node in members)
        weights = [self._speeds.weight(node.pool, self._servers) for node in members]
        cut = sum(w * node.share for w, node in zip(weights, members, strict=True))
        return cut / sum(weights)
