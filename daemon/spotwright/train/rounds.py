"""Bulk-synchronous updates: a round takes one gradient of each member, weighted by its batch.

Server 0 says who is a member. A worker that joins becomes one when the open round closes, or at
once where nobody else trains; one that leaves, or whose connection ends, is waited for no longer.
The other servers learn the members from the pushes themselves, whose note carries the list that
server 0 gave with the parameters, so that all servers make the same rounds. A round that waits for
longer than the patience closes without those that are missing. These are told when they push, and
are members again when the open round closes: a worker that hangs is waited for once.

Servers close a round one after the other. Who joins, or was late, hears the version of server 0 and
has the others close that round before it takes their parameters; else its pushes would come a round
late there for ever, and server 0 would reach the last step when another had not.

The mean is kept as a running one, mean += (gradient - mean) * batch / batches so far: it cannot
overflow where the gradients do not.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from spotwright.train.updates import Outcome, Progress, Push

_REJOIN_S = 5.0  # after a restart: for members that were there before


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """How rounds of a server begin and end."""

    decides_members: bool = True  # server 0 does
    begin_with: int = 1  # the first round waits for so many workers
    patience_s: float = 60.0  # a round waits no longer for its last members
    former: frozenset[str] = frozenset()  # members before a restart, which is waited for a little


class SynchronousRounds:
    """Members, and the round that is open."""

    def __init__(self, progress: Progress, rules: RoundRules) -> None:
        """Open the first round."""
        self._progress, self._rules = progress, rules
        self._mean = progress.shard.room()
        self._connected: set[str] = set()
        self._joining: set[str] = set()
        self._members, self._listed_at = set(rules.former), -1
        self._closed_at = -1  # the version of server 0 in which the last round was opened
        self._behind: dict[str, int] = {}  # who waits here for a round that server 0 has closed
        self._has_begun = bool(rules.former)
        self._absent_until_s = time.monotonic() + _REJOIN_S
        self._pushes: dict[str, Push] = {}
        self._batches, self._first_s = 0, 0.0

    def connected(self, worker: str) -> None:
        """Wait for a worker where it is a member."""
        with self._progress.lock:
            self._connected.add(worker)

    def join(self, worker: str) -> None:
        """Make a worker a member, when the open round has closed."""
        progress = self._progress
        with progress.lock:
            self._joining.add(worker)
            self._admit_where_nobody_trains()
            progress.lock.notify_all()
            while worker not in self._members and progress.takes_updates:
                self._wait()
                self._admit_where_nobody_trains()
            self._joining.discard(worker)

    def leave(self, worker: str) -> None:
        """Wait for a worker no longer; what it pushed counts."""
        with self._progress.lock:
            self._connected.discard(worker)
            self._joining.discard(worker)
            if self._rules.decides_members:
                self._members.discard(worker)
            self._close_if_complete()
            self._progress.lock.notify_all()

    def catch_up(self, worker: str, version: int) -> None:
        """Wait until all rounds are closed that server 0 had closed when it told a version."""
        if self._rules.decides_members:
            return
        progress, ends_s = self._progress, time.monotonic() + self._rules.patience_s
        with progress.lock:
            self._behind[worker] = version
            self._close_if_complete()
            progress.lock.notify_all()
            while self._lacks(version) and self._connected - set(self._behind):
                left_s = ends_s - time.monotonic()
                if left_s <= 0 or not progress.takes_updates:
                    break
                progress.lock.wait(left_s)
            self._behind.pop(worker, None)
            # Where nobody is left who would push to that round, others wait for it no more, either.
            self._closed_at = max(self._closed_at, version - 1)
            progress.lock.notify_all()

    def members(self) -> list[str]:
        """Return who the next round waits for."""
        with self._progress.lock:
            return sorted(self._members)

    def push(self, push: Push) -> Outcome:
        """Add a gradient to the open round, and wait until that closes."""
        progress = self._progress
        with progress.lock:
            version = progress.shard.version
            if push.sequence <= progress.shard.applied.get(push.worker, 0):
                return Outcome(applied=True)
            if push.version < version or not progress.takes_updates:
                if push.worker not in self._members:
                    self._joining.add(push.worker)  # not at once: servers have a list per version
                return Outcome(applied=False, staleness=max(0, version - push.version))
            self._learn_members(push.note)
            if push.worker not in self._pushes:
                self._add(push)
            self._close_if_complete()
            while progress.shard.version == version and progress.takes_updates:
                self._wait()
            counts = push.sequence <= progress.shard.applied.get(push.worker, 0)
        return Outcome(applied=counts)

    def _learn_members(self, note: Mapping[str, Any]) -> None:
        listed, at = note.get("members"), note.get("members_at")
        if self._rules.decides_members or not isinstance(listed, list) or type(at) is not int:
            return
        if at != self._listed_at:
            self._members, self._listed_at = {str(member) for member in listed}, at
            self._progress.lock.notify_all()

    def _lacks(self, version: int) -> bool:
        """Tell whether a round is open, or not begun, that server 0 closed before a version."""
        return self._closed_at < version - 1 and self._listed_at < version

    def _admit_where_nobody_trains(self) -> None:
        if self._has_begun:
            is_due = not self._members & self._connected
        else:
            is_due = self._has_begun = len(self._joining) >= self._rules.begin_with
        if is_due:
            self._admit()

    def _admit(self) -> None:
        if self._rules.decides_members:
            self._members |= self._joining
            self._joining.clear()

    def _add(self, push: Push) -> None:
        if not self._pushes:
            self._first_s = time.monotonic()
        self._pushes[push.worker] = push
        self._batches += push.batch
        share = push.batch / self._batches
        for mean, gradient in zip(self._mean.gradients, push.content.gradients, strict=True):
            _move(mean, gradient, share)
        for mean, statistic in zip(self._mean.statistics, push.content.statistics, strict=True):
            _move(mean, statistic, share)

    def _close_if_complete(self) -> None:
        if not self._pushes or not self._progress.takes_updates or self._missing():
            return
        self._progress.before_update()
        if not self._pushes or not self._progress.takes_updates:
            return  # closed, or ended, by another while this one waited
        pushes, self._pushes, self._batches = self._pushes, {}, 0
        self._closed_at = self._listed_at
        if self._rules.decides_members:
            self._members -= self._connected - set(pushes)
        self._progress.shard.apply(self._mean)
        for push in pushes.values():
            self._progress.applied(push, 0)
        self._admit()
        self._progress.lock.notify_all()

    def _missing(self) -> set[str]:
        now_s = time.monotonic()
        if now_s - self._first_s >= self._rules.patience_s:
            return set()
        behind = {worker for worker, version in self._behind.items() if self._lacks(version)}
        missing = self._members - set(self._pushes) - behind
        return missing if now_s < self._absent_until_s else missing & self._connected

    def _wait(self) -> None:
        """Wait for news, or for the time at which somebody is waited for no longer."""
        now_s = time.monotonic()
        ends_s = [self._absent_until_s, self._first_s + self._rules.patience_s]
        ahead_s = [end_s - now_s for end_s in ends_s if end_s > now_s]
        self._progress.lock.wait(min(ahead_s, default=None))
        self._close_if_complete()


def _move(mean: Tensor, value: Tensor, share: float) -> None:
    """Move a running mean; counters, which have no mean, take the larger."""
    if share == 1.0:
        mean.copy_(value)
    elif mean.is_floating_point() or mean.is_complex():
        mean.lerp_(value, share)
    else:
        mean.copy_(mean.maximum(value))
