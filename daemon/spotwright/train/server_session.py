"""One connection of a parameter server, from its first frame to its last."""

import math
import re
from collections.abc import Mapping
from typing import Any, Protocol

from spotwright.domain.errors import (
    BatchError,
    LossNotFiniteError,
    PeerRefusedError,
    SpotwrightError,
    TrainingError,
    TrainingOverError,
)
from spotwright.train.layout import difference, read_manifest
from spotwright.train.publication import Publication
from spotwright.train.served_shard import PushBuffer
from spotwright.train.updates import Outcome, Progress, Push, Updates
from spotwright.train.wire import HELLO_MAX_BYTES, ConnectionLostError, Flag, Frame, FrameKind, Wire

_HELLO_S = 10.0  # for all of it
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class SessionHome(Protocol):
    """What a session needs of its server."""

    progress: Progress
    updates: Updates
    publication: Publication
    tells_members: bool  # to workers, whose pushes tell the other servers

    def describe(self) -> Mapping[str, Any]:
        """Return what the server is, and how far."""

    def entered(self, session: "Session") -> None:
        """Make a session that of its worker."""

    def left(self, session: "Session") -> None:
        """Count on its worker no longer."""

    def is_over_elsewhere(self) -> None:
        """Take note that a worker has seen the end on another server."""

    def workers(self) -> list[str]:
        """Return who is connected."""


class Session:
    """A worker, or somebody who asks for the status."""

    def __init__(self, wire: Wire, home: SessionHome) -> None:
        self.wire, self._home = wire, home
        self._progress = home.progress
        self.worker, self.nonce = "", ""
        self._room: PushBuffer | None = None

    def run(self) -> None:
        """Answer frames until the peer leaves.

        Raises:
            ConnectionLostError: it went without a word.
        """
        try:
            self.wire.set_deadline(_HELLO_S)
            first = self.wire.receive_head(note_max_bytes=HELLO_MAX_BYTES)
            if first.kind is FrameKind.STATUS:
                self.wire.send(Frame(kind=FrameKind.STATUS, note=self._status()))
                return
            self._greet(first)
        except SpotwrightError as error:
            self._refuse(error)
            return
        try:
            self.wire.set_timeout(None)
            self._welcome()
            while self._answer(self.wire.receive_head()):
                pass
        except SpotwrightError as error:
            self._refuse(error)
        except ConnectionLostError:
            raise
        except Exception as error:
            self._progress.fail(TrainingError(f"the parameter server failed: {error!r}"))
            raise
        finally:
            self._home.left(self)

    def _status(self) -> dict[str, Any]:
        workers, members = self._home.workers(), self._home.updates.members()
        return {**self._home.describe(), "workers": workers, "members": members}

    def _greet(self, hello: Frame) -> None:
        """Learn who the peer is, and check that it has the same model."""
        if hello.kind is not FrameKind.HELLO:
            raise PeerRefusedError(f"a {hello.kind.name} frame before HELLO")
        self.wire.receive_body(hello)
        name, self.nonce = str(hello.note.get("worker")), str(hello.note.get("nonce"))
        if not _NAME.fullmatch(name):
            raise PeerRefusedError(f"{name[:140]!r} cannot be the name of a worker")
        layout = self._progress.shard.layout
        differs = difference(layout, read_manifest(hello.note.get("manifest")))
        if differs:
            raise PeerRefusedError(f"worker {name} has another model than this server: {differs}")
        self._check_running()
        self.worker = name
        self._home.entered(self)

    def _welcome(self) -> None:
        with self._home.publication.lent() as (version, memory):
            sequence = self._progress.shard.applied.get(self.worker, 0)
            told = Frame(
                kind=FrameKind.WELCOME,
                sequence=sequence,
                version=version,
                note=self._home.describe(),
            )
            self.wire.send(told, [memory])

    def _answer(self, frame: Frame) -> bool:
        """Do what a worker asks; return whether it stays."""
        if frame.kind is FrameKind.PUSH:
            self._take_push(frame)
            return True
        self.wire.receive_body(frame)
        if frame.kind is FrameKind.LEAVE:
            self._goodbye(frame)
            return False
        if frame.kind is FrameKind.JOIN:
            self._home.updates.join(self.worker)
        elif frame.kind is FrameKind.PULL:
            self._home.updates.catch_up(self.worker, frame.version)
        else:
            raise PeerRefusedError(f"a {frame.kind.name} frame from a worker")
        self._check_failure()
        self._send_parameters(Outcome(applied=False), sequence=0)
        return True

    def _take_push(self, frame: Frame) -> None:
        room = self._room = self._room or self._progress.shard.room()
        self.wire.receive_body(frame, [room.memory])
        if frame.batch < 1:
            raise BatchError(f"worker {self.worker} pushed a gradient of a batch of 0 samples")
        if not math.isfinite(frame.loss):
            error = LossNotFiniteError(frame.loss, worker=self.worker, step=frame.sequence)
            self._progress.fail(error)
            raise error
        outcome = self._home.updates.push(
            Push(
                worker=self.worker,
                sequence=frame.sequence,
                version=frame.version,
                batch=frame.batch,
                loss=frame.loss,
                content=room,
                note=frame.note,
            )
        )
        self._check_failure()
        self._send_parameters(outcome, sequence=frame.sequence)

    def _send_parameters(self, outcome: Outcome, *, sequence: int) -> None:
        flags = Flag.APPLIED if outcome.applied else Flag.NONE
        note: dict[str, Any] = {}
        with self._home.publication.lent() as (version, memory):
            if self._progress.is_over:
                flags |= Flag.OVER
            if self._home.tells_members:
                note = {"members": self._home.updates.members(), "members_at": version}
            answer = Frame(
                kind=FrameKind.UPDATED,
                flags=flags,
                sequence=sequence,
                version=version,
                staleness=outcome.staleness,
                note=note,
            )
            self.wire.send(answer, [memory[: self._progress.shard.shard.exchanged_bytes]])

    def _goodbye(self, frame: Frame) -> None:
        problem = frame.note.get("failure")
        if problem:
            self._progress.fail(TrainingError(str(problem)[:2000]))
        elif Flag.OVER in frame.flags:
            self._home.is_over_elsewhere()
        self.wire.send(Frame(kind=FrameKind.LEAVE))

    def _check_running(self) -> None:
        self._check_failure()
        if self._progress.is_over:
            version = self._progress.shard.version
            raise TrainingOverError(
                f"training ended after {version} updates; there is nothing to join. Its "
                "parameters are in the checkpoint, if it had one"
            )

    def _check_failure(self) -> None:
        if self._progress.failure is not None:
            raise self._progress.failure

    def _refuse(self, error: SpotwrightError) -> None:
        self.wire.refuse(error.reason, str(error))
