"""A worker's connection with one server, made anew when it breaks."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from spotwright.domain.address import Address
from spotwright.domain.errors import (
    PeerRefusedError,
    ServerLostError,
    TrainingError,
    TrainingOverError,
)
from spotwright.train.layout import Shard
from spotwright.train.model_memory import ModelMemory
from spotwright.train.secure import connect
from spotwright.train.wire import ConnectionLostError, Flag, Frame, FrameKind, Wire

_T = TypeVar("_T")
_CONNECT_S = 10.0
_WELCOME_S = 30.0  # that a server has to answer in; what is none may never do so
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """Who connects, and how."""

    worker: str
    tls_dir: Path | None = None
    patience_s: float = 120.0  # for a server that is away
    nonce: str = ""  # tells this process from another of the same name

    @classmethod
    def of(cls, worker: str, *, tls_dir: Path | None, patience_s: float) -> "LinkSettings":
        """Return settings of a process of its own."""
        return cls(worker=worker, tls_dir=tls_dir, patience_s=patience_s, nonce=token_hex(8))


class ServerLink:
    """One server as a worker sees it."""

    def __init__(self, address: Address, settings: LinkSettings, memory: ModelMemory) -> None:
        self.address, self._settings, self._memory = address, settings, memory
        self._wire: Wire | None = None
        self._opened = self._has_joined = self._is_ended = self._is_hurried = False
        self.index, self.count = -1, -1
        self.version, self.sequence = 0, 0
        self.reconnects = 0
        self.shard = Shard(start=0, stop=0, frozen_start=0, frozen_stop=0)
        self.members: dict[str, Any] = {}  # as the server told them with its parameters

    def open(self) -> None:
        """Connect, learn what the server holds, and receive it into the model's memory."""
        self._patiently(lambda: None)

    def join(self) -> Frame:
        """Become a member: this server decides who is."""
        answer = self._patiently(lambda: self._ask(Frame(kind=FrameKind.JOIN)))
        self._has_joined = True
        return answer

    def pull(self, version: int = 0) -> Frame:
        """Receive the parameters; of rounds, once those are closed that server 0 has closed."""
        return self._patiently(lambda: self._ask(Frame(kind=FrameKind.PULL, version=version)))

    def push(self, frame: Frame) -> Frame:
        """Push the gradients and receive the parameters; a broken push is pushed again."""

        def attempt() -> Frame:
            return self._ask(
                Frame(
                    kind=FrameKind.PUSH,
                    sequence=frame.sequence,
                    version=self.version,
                    batch=frame.batch,
                    loss=frame.loss,
                    note=frame.note,
                ),
                self._memory.gradients(self.shard),
            )

        return self._patiently(attempt)

    def leave(self, *, is_over: bool, failure: str) -> None:
        """Say goodbye, and wait until it was heard; a server that is gone is let go."""
        if self._wire is None:
            return
        flags = Flag.OVER if is_over else Flag.NONE
        try:
            self._wire.set_timeout(_CONNECT_S)
            self._wire.send(
                Frame(
                    kind=FrameKind.LEAVE,
                    flags=flags,
                    note={"failure": failure[:2000]} if failure else {},
                )
            )
            self._wire.receive_head()
        except (ConnectionLostError, TrainingError):
            pass  # it is gone, or ends by itself: nothing of ours is lost
        self.close()

    def end(self) -> None:
        """End the connection for good; who waits in it in another thread waits no longer."""
        self._is_ended = True
        self.close()

    def hurry(self) -> None:
        """Wait no longer for the server if it is away, or goes away."""
        self._is_hurried = True

    def close(self) -> None:
        """End the connection without a word."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        """Do something with the server; connect anew and do it again while it is away.

        Raises:
            ServerLostError: it stayed away.
            PeerRefusedError: it does not want this worker.
            TrainingOverError: training has ended.
        """
        lost_s, pause_s = 0.0, _FIRST_PAUSE_S
        while True:
            if self._is_ended:
                raise ServerLostError(f"the connection with {self.address} was ended here")
            try:
                if self._wire is None:
                    self._connect()
                return attempt()
            except TrainingError:
                self.close()
                raise
            except ConnectionLostError as error:
                self.close()
                lost_s = lost_s or time.monotonic()
                away_s = time.monotonic() - lost_s
                if away_s > self._settings.patience_s or self._is_hurried:
                    raise self._lost(min(away_s, self._settings.patience_s), error) from error
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _lost(self, away_s: float, error: ConnectionLostError) -> ServerLostError:
        return ServerLostError(
            f"parameter server {self.address} is away for {away_s:.2g} s ({error}); start it "
            "again with the same checkpoint, and this worker anew"
        )

    def _connect(self) -> None:
        settings = self._settings
        connection = connect(self.address, tls_dir=settings.tls_dir, timeout_s=_CONNECT_S)
        wire = self._wire = Wire(connection)
        note = {
            "worker": settings.worker,
            "nonce": settings.nonce,
            "manifest": self._memory.layout.manifest(),
        }
        wire.send(Frame(kind=FrameKind.HELLO, note=note))
        wire.set_deadline(min(_WELCOME_S, settings.patience_s))
        welcome = self._head(FrameKind.WELCOME)
        wire.set_timeout(None)
        self._learn(welcome.note)
        wire.receive_body(welcome, self._memory.parameters(self.shard, with_frozen=True))
        if self._opened:
            self.reconnects += 1  # and the version stays that of the gradient that is pushed next
        else:
            self.sequence, self.version = welcome.sequence, welcome.version
        self._opened = True
        if self._has_joined:
            self._receive_after(Frame(kind=FrameKind.JOIN))

    def _ask(self, frame: Frame, body: Sequence[memoryview] = ()) -> Frame:
        answer = self._receive_after(frame, body)
        self.version = answer.version
        return answer

    def _receive_after(self, frame: Frame, body: Sequence[memoryview] = ()) -> Frame:
        assert self._wire is not None
        self._wire.send(frame, body)
        answer = self._head(FrameKind.UPDATED)
        self._wire.receive_body(answer, self._memory.parameters(self.shard, with_frozen=False))
        self.members = dict(answer.note)
        return answer

    def _head(self, kind: FrameKind) -> Frame:
        """Receive the head of the answer, which is of one kind unless the server refuses."""
        assert self._wire is not None
        answer = self._wire.receive_head()
        if answer.kind is FrameKind.REFUSED:
            self._wire.receive_body(answer)
            reason, problem = answer.note.get("reason"), str(answer.note.get("problem"))
            if reason == TrainingOverError.reason:
                raise TrainingOverError(problem)
            if reason == PeerRefusedError.reason:
                raise PeerRefusedError(f"{self.address} refuses this worker: {problem}")
            raise TrainingError(f"{self.address} says: {problem}")
        if answer.kind is not kind:
            raise PeerRefusedError(f"{self.address} answered {answer.kind.name}, not {kind.name}")
        return answer

    def _learn(self, told: Mapping[str, Any]) -> None:
        """Take what the server says of itself."""
        names = ("start", "stop", "frozen_start", "frozen_stop", "index", "count")
        figures = {name: told[name] for name in names if type(told.get(name)) is int}
        if len(figures) < len(names):
            raise PeerRefusedError(f"{self.address} does not say which server it is")
        index, count = figures.pop("index"), figures.pop("count")
        if self._opened and (index, count) != (self.index, self.count):
            raise PeerRefusedError(
                f"{self.address} was server {self.index} of {self.count}, and came back as "
                f"{index} of {count}; start it as before"
            )
        self.shard, self.index, self.count = Shard(**figures), index, count
