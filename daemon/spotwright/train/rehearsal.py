"""All roles of a plan as processes of this machine.

They are forked from a process that has imported PyTorch once. Servers tell workers that come late
that training is over until the last one has ended. Whoever is left when the one that started them
dies ends, too: a server saves first.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, SpotwrightError, TrainingError
from spotwright.train.roles import (
    ServerResult,
    ServerRole,
    WorkerRole,
    run_server,
    run_worker,
)
from spotwright.train.training_loop import WorkerResult

_ENDS_WITHIN_S = 30.0
_SAW_THE_END = ("over", "late")
_SLOW_TO_IMPORT = "torch._dynamo"  # which the first optimizer of a process does


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What became of all roles."""

    servers: Sequence[ServerResult]
    workers: Sequence[WorkerResult]


@dataclass(frozen=True, slots=True)
class _Child:
    label: str
    is_worker: bool
    process: ForkServerProcess
    pipe: "Connection[Any, Any]"


@dataclass(frozen=True, slots=True)
class _Killed:
    """A worker that somebody, or the kernel, took away."""

    signal: str


def rehearse(
    servers: Sequence[ServerRole], workers: Sequence[WorkerRole], *, tell: Callable[[str], None]
) -> Rehearsal:
    """Run servers, then workers that are told where the servers are, until training is over.

    A worker that is killed is told, and the others go on.

    Raises:
        SpotwrightError: what the first role that failed says, or that no worker is left; what still
            runs is ended.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["spotwright.train.roles", _SLOW_TO_IMPORT])
    children: list[_Child] = []
    try:
        for role in servers:  # in a list from the start, so that all are ended
            stays = replace(role, linger_s=None)
            children += [_start(context, f"server {role.settings.index}", stays)]
        addresses = tuple(str(_listening(child, tell)) for child in children)
        for role_of_worker in workers:
            placed = replace(role_of_worker, servers=addresses)
            children.append(_start(context, f"worker {placed.name}", placed))
        results = _results(children, tell)
    finally:
        _end(children)
    return Rehearsal(
        servers=sorted(
            (one for one in results if isinstance(one, ServerResult)), key=lambda one: one.index
        ),
        workers=sorted(
            (one for one in results if isinstance(one, WorkerResult)), key=lambda one: one.worker
        ),
    )


def _start(context: ForkServerContext, label: str, role: ServerRole | WorkerRole) -> _Child:
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(role, theirs), name=label, daemon=True)
    process.start()
    theirs.close()
    return _Child(label, isinstance(role, WorkerRole), process, ours)


def _listening(child: _Child, tell: Callable[[str], None]) -> Address:
    while True:
        told = _heard(child)
        if isinstance(told, Address):
            return told
        if isinstance(told, str):
            tell(f"{child.label}: {told}")


def _results(children: Sequence[_Child], tell: Callable[[str], None]) -> list[object]:
    """Wait for every role, and pass on what they tell."""
    left, results = {child.pipe: child for child in children}, []
    while left:
        for pipe in wait(list(left)):
            child = left[pipe]  # type: ignore[index]
            told = _heard(child)
            if isinstance(told, str):
                tell(f"{child.label}: {told}")
                continue
            del left[child.pipe]
            if isinstance(told, _Killed):
                tell(f"{child.label} was killed ({told.signal}), the others go on")
            else:
                results.append(told)
            if child.is_worker and not any(other.is_worker for other in left.values()):
                _let_go(left.values(), results)
    return results


def _let_go(servers: Iterable[_Child], results: Iterable[object]) -> None:
    """Have servers end, which no worker needs any more."""
    if not any(isinstance(one, WorkerResult) and one.ended in _SAW_THE_END for one in results):
        raise TrainingError(
            "no worker is left and training is not over; what was saved can be gone on from"
        )
    for server in servers:
        with suppress(OSError):  # it has ended, and what it said is read next
            server.pipe.send(None)


def _heard(child: _Child) -> object:
    try:
        told = child.pipe.recv()
    except EOFError:
        child.process.join(_ENDS_WITHIN_S)
        code = child.process.exitcode
        if child.is_worker and code is not None and code < 0:
            return _Killed(signal.Signals(-code).name)
        raise TrainingError(f"{child.label} died (exit code {code})") from None
    if isinstance(told, SpotwrightError):
        raise told
    return told


def _end(children: Sequence[_Child]) -> None:
    for child in children:
        child.pipe.close()  # which tells it
    for child in children:
        child.process.join(_ENDS_WITHIN_S)
        if child.process.is_alive():
            child.process.kill()
            child.process.join()


def _run(role: ServerRole | WorkerRole, pipe: "Connection[Any, Any]") -> None:
    """Be a role; in a process of its own."""
    threading.Thread(target=_end_when_told, args=(role, pipe), daemon=True).start()
    try:
        if isinstance(role, ServerRole):
            told: object = run_server(role, tell=pipe.send, listens=pipe.send)
        else:
            told = run_worker(role, tell=pipe.send)
    except SpotwrightError as error:
        told = _portable(error)
    with suppress(OSError):  # nobody listens any more
        pipe.send(told)


def _portable(error: SpotwrightError) -> SpotwrightError:
    """Return an error that can be sent: those made of facts cannot be made of their text."""
    is_input = isinstance(error, BadInputError)
    return BadInputError(str(error)) if is_input else TrainingError(str(error))


def _end_when_told(role: ServerRole | WorkerRole, pipe: "Connection[Any, Any]") -> None:
    """End when the parent says so, or is gone."""
    with suppress(EOFError, OSError):
        pipe.recv()
    if isinstance(role, WorkerRole):
        os._exit(1)  # it has nothing to save
    os.kill(os.getpid(), signal.SIGTERM)
