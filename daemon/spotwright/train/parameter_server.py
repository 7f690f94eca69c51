"""A parameter server: holds a shard of a model, and steps it with the gradients of workers.

    with ParameterServer(model, optimizer, settings=ServerSettings(steps=1000)) as server:
        print(server.address)
        server.wait()

Each server of a job is a process of its own and builds the same model; settings say which of them
it is. docs/training.md has what is guaranteed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from torch import nn, optim

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, TrainingError
from spotwright.domain.workload import Strategy
from spotwright.train.checkpoint import Checkpoint, check_fits, from_bytes
from spotwright.train.checkpoint_places import CheckpointPlace, open_place, shard_name
from spotwright.train.host_memory import check_fits as check_memory
from spotwright.train.layout import Layout
from spotwright.train.publication import Publication
from spotwright.train.rounds import RoundRules, SynchronousRounds
from spotwright.train.saving import Saver, SavingRules
from spotwright.train.served_shard import ServedShard, is_elementwise
from spotwright.train.server_sessions import ServerSessions
from spotwright.train.updates import AsynchronousUpdates, Progress, Update, Updates

_GOODBYE_S = 60.0  # that workers have to end their last step in, and to leave
STRATEGIES = (Strategy.ASP_PS, Strategy.BSP_PS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Which server of which job."""

    index: int = 0
    count: int = 1
    strategy: Strategy = Strategy.ASP_PS
    steps: int | None = None  # updates until training is over; None: for ever
    listen: Address = field(default_factory=lambda: Address("127.0.0.1", 0))
    tls_dir: Path | None = None
    checkpoint: str | None = None  # a folder or s3://BUCKET/KEY
    every: int = 100  # updates that may be lost
    begin_with: int = 1  # of a synchronous job: the first round waits for so many workers
    patience_s: float = 60.0  # of a synchronous job: a round waits no longer for a worker
    expected_workers: int = 8  # for which the host must have memory

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise BadInputError(f"there is no server {self.index} of {self.count}")
        if self.strategy not in STRATEGIES:
            raise BadInputError(
                f"parameter servers train asp-ps and bsp-ps, not {self.strategy}; all-reduce jobs "
                "run under torchrun: see docs/training.md"
            )
        if self.every < 1 or self.begin_with < 1 or (self.steps is not None and self.steps < 1):
            raise BadInputError("every, begin_with and steps count from 1")


class ParameterServer:
    """One shard of a model, served."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        *,
        settings: ServerSettings | None = None,
        observe: Callable[[Update], None] | None = None,
    ) -> None:
        """Take a model's parameters, or those of the checkpoint if there is one.

        The optimizer is made the server's own and steps the model no more.

        Args:
            model: as every server and worker of the job builds it.
            optimizer: with its settings; it has not stepped yet.
            settings: which server this is.
            observe: called for each update, under the server's lock: to be quick.
        """
        self.settings = settings = settings or ServerSettings()
        layout = Layout.of(model)
        shards = layout.shards(settings.count, cuts_tensors=is_elementwise(optimizer))
        check_memory(shards[settings.index], optimizer, workers=settings.expected_workers)
        shard = ServedShard(model, optimizer, layout=layout, shard=shards[settings.index])
        self.progress = Progress(shard, steps=settings.steps, observe=observe)
        place = open_place(settings.checkpoint) if settings.checkpoint else None
        former = self._resume(place) if place else None
        self.resumed_version = former.version if former else None
        self.updates = self._updates(former)
        self._saver = self._make_saver(place) if place else None
        self._sessions = ServerSessions(
            self.progress,
            self.updates,
            publication=Publication(shard, self.progress.lock),
            describe=self._describe,
            tells_members=settings.strategy is Strategy.BSP_PS and settings.count > 1,
        )

    @property
    def address(self) -> Address:
        """Where it listens, once it has started."""
        return self._sessions.address

    @property
    def saved_version(self) -> int | None:
        """The latest version that a crash does not lose; None: nothing is saved."""
        return self._saver.saved_version if self._saver else None

    def start(self) -> None:
        """Listen, and serve workers from threads of their own."""
        self._sessions.start(self.settings.listen, tls_dir=self.settings.tls_dir)
        if self._saver:
            self._saver.start()

    def wait(self, *, linger_s: float | None = 0.0) -> None:
        """Wait until training is over and its workers have left.

        Args:
            linger_s: how long workers that come late are still told that it is over; None: until
                this is asked to end.

        Raises:
            TrainingError: it cannot go on.
        """
        progress = self.progress
        with progress.lock:
            while progress.takes_updates:
                progress.lock.wait(1.0)  # Ctrl-C is heard in between
        if not progress.is_stopped:
            self._sessions.wait_until_all_left(_GOODBYE_S)
            with progress.lock:
                progress.lock.wait_for(lambda: progress.is_stopped, linger_s)
        if progress.failure is not None:
            raise progress.failure

    def close(self) -> None:
        """Save what is not saved yet, and end every connection.

        Raises:
            TrainingError: it cannot be saved.
        """
        self._sessions.close()
        if self._saver:
            self._saver.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except TrainingError:
            if error is None:
                raise  # else that one is told, which came first

    def _updates(self, former: Checkpoint | None) -> Updates:
        if self.settings.strategy is Strategy.ASP_PS:
            return AsynchronousUpdates(self.progress)
        rules = RoundRules(
            decides_members=self.settings.index == 0,
            begin_with=self.settings.begin_with,
            patience_s=self.settings.patience_s,
            former=frozenset(former.members if former else ()),
        )
        return SynchronousRounds(self.progress, rules)

    def _resume(self, place: CheckpointPlace) -> Checkpoint | None:
        name, shard = self._shard_name, self.progress.shard
        content = place.read(name)
        if content is None:
            return None
        where = place.describe(name)
        found = from_bytes(content, place=where)
        check_fits(
            found,
            layout=shard.layout,
            index=self.settings.index,
            count=self.settings.count,
            place=where,
        )
        shard.restore(found.parameters, dict(found.optimizer))
        shard.version, shard.applied = found.version, dict(found.applied)
        reached = max(found.version, found.steps or 0)
        if found.is_over and (self.settings.steps or 0) <= reached:
            self.progress.end()
        return found

    def _make_saver(self, place: CheckpointPlace) -> Saver:
        rules = SavingRules(place=place, name=self._shard_name, every=self.settings.every)
        return Saver(self.progress, rules, self._snapshot)

    @property
    def _shard_name(self) -> str:
        return shard_name(self.settings.index, self.settings.count)

    def _snapshot(self) -> Checkpoint:
        shard = self.progress.shard
        return Checkpoint(
            layout=shard.layout,
            shard=shard.shard,
            index=self.settings.index,
            server_count=self.settings.count,
            version=shard.version,
            applied=dict(shard.applied),
            members=self.updates.members(),
            is_over=self.progress.is_over,
            steps=self.settings.steps,
            parameters=shard.flat.raw.clone(),
            optimizer=shard.copied_state(),
        )

    def _describe(self) -> dict[str, object]:
        """Return what a worker, or whoever asks, is told of this server."""
        with self.progress.lock:
            shard = self.progress.shard
            return {
                "index": self.settings.index,
                "count": self.settings.count,
                "strategy": str(self.settings.strategy),
                "start": shard.shard.start,
                "stop": shard.shard.stop,
                "frozen_start": shard.shard.frozen_start,
                "frozen_stop": shard.shard.frozen_stop,
                "version": shard.version,
                "saved_version": self.saved_version,
                "is_over": self.progress.is_over,
            }
