"""When a push changes the parameters: at once, or with the other members of its round."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Condition
from typing import Any, Protocol

from spotwright.domain.errors import TrainingError
from spotwright.train.served_shard import PushBuffer, ServedShard


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One push as it was applied; of a round, one for each worker in it."""

    worker: str
    sequence: int
    version: int  # of the parameters after it
    staleness: int
    batch: int
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One gradient as it arrived."""

    worker: str
    sequence: int
    version: int  # of the parameters it was computed on
    batch: int
    loss: float
    content: PushBuffer
    note: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a push."""

    applied: bool
    staleness: int = 0


class Updates(Protocol):
    """A strategy; every call may wait, and holds the server's lock when it does not."""

    def connected(self, worker: str) -> None:
        """Take note of a worker that has a connection."""

    def join(self, worker: str) -> None:
        """Count on a worker's pushes from now on; wait until it may compute one."""

    def leave(self, worker: str) -> None:
        """Count on them no longer."""

    def push(self, push: Push) -> Outcome:
        """Take a gradient; return when it was applied, or will never be."""

    def catch_up(self, worker: str, version: int) -> None:
        """Wait until what server 0 told a worker that it has taken is taken here."""

    def members(self) -> list[str]:
        """Return the workers whose pushes the next update waits for."""


class Progress:
    """The course of training on one server, under one lock that also guards the parameters."""

    def __init__(
        self, shard: ServedShard, *, steps: int | None, observe: Callable[[Update], None] | None
    ) -> None:
        self.shard, self.steps, self._observe = shard, steps, observe
        self.lock = Condition()
        self.before_update: Callable[[], None] = lambda: None  # has it saved, or waits for that
        self.failure: TrainingError | None = None
        self._ended_elsewhere = False
        self.is_stopped = False  # in this process; another may go on

    @property
    def is_over(self) -> bool:
        """Whether the last step was made, here or on another server."""
        reached = self.steps is not None and self.shard.version >= self.steps
        return reached or self._ended_elsewhere

    @property
    def takes_updates(self) -> bool:
        """Whether there is another step to make."""
        return not (self.is_over or self.is_stopped) and self.failure is None

    def stop(self) -> None:
        """Make no more steps in this process; another may go on from its checkpoint."""
        with self.lock:
            self.is_stopped = True
            self.lock.notify_all()

    def end(self) -> None:
        """Make no more steps: a worker has seen the end on another server."""
        with self.lock:
            self._ended_elsewhere = True
            self.lock.notify_all()

    def fail(self, error: TrainingError) -> None:
        """Make no more steps, and tell every worker why."""
        with self.lock:
            self.failure = self.failure or error
            self.lock.notify_all()

    def applied(self, push: Push, staleness: int) -> None:
        """Keep that a push counts. Under the lock."""
        self.shard.applied[push.worker] = push.sequence
        if self.is_over:
            self.lock.notify_all()
        if self._observe is not None:
            self._observe(
                Update(
                    worker=push.worker,
                    sequence=push.sequence,
                    version=self.shard.version,
                    staleness=staleness,
                    batch=push.batch,
                    loss=push.loss,
                )
            )


class AsynchronousUpdates:
    """Each gradient changes the parameters when it arrives."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._members: set[str] = set()

    def connected(self, worker: str) -> None:
        """Nobody is waited for."""

    def join(self, worker: str) -> None:
        """Count a worker."""
        with self._progress.lock:
            self._members.add(worker)

    def leave(self, worker: str) -> None:
        """Count it no longer."""
        with self._progress.lock:
            self._members.discard(worker)

    def catch_up(self, worker: str, version: int) -> None:
        """Nobody is waited for."""

    def members(self) -> list[str]:
        """Return who pushes."""
        with self._progress.lock:
            return sorted(self._members)

    def push(self, push: Push) -> Outcome:
        """Apply a gradient, once."""
        progress = self._progress
        with progress.lock:
            if push.sequence <= progress.shard.applied.get(push.worker, 0):
                return Outcome(applied=True)
            progress.before_update()
            if not progress.takes_updates:
                return Outcome(applied=False)
            staleness = max(0, progress.shard.version - push.version)
            progress.shard.apply(push.content)
            progress.applied(push, staleness)
        return Outcome(applied=True, staleness=staleness)
