"""Hosts: a network, a CPU quota, and processes that run there."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from lab import cpu_quota, network
from spotwright.domain.errors import OutsideWorldError

_P = ParamSpec("_P")
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine of the laboratory."""

    name: str
    address: str
    group: Path  # of its CPU quota
    agent_socket: Path  # where training tells the agent of this host its steps


class HostProcess:
    """A function that runs on a host, and what it sends back."""

    def __init__(
        self, host: Host, run: Callable[Concatenate[Connection, _P], None], *arguments: Any
    ) -> None:
        """Start it."""
        self.host = host
        context = multiprocessing.get_context("forkserver")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_run_on, args=(host, theirs, run, arguments), daemon=True
        )
        self.process.start()
        theirs.close()

    def receive(self, *, patience_s: float = _PATIENCE_S) -> Any:
        """Return what it sends next.

        Raises:
            OutsideWorldError: it ended without, or is silent.
        """
        try:
            if self._pipe.poll(patience_s):
                return self._pipe.recv()
        except EOFError:
            self.process.join(_PATIENCE_S)
            code = self.process.exitcode
            raise OutsideWorldError(
                f"{self.process.name} on {self.host.name} ended: {code}"
            ) from None
        raise OutsideWorldError(f"{self.process.name} on {self.host.name} is silent")

    @property
    def has_sent(self) -> bool:
        """Whether `receive` would return, or raise, at once."""
        return self._pipe.poll()

    def stop(self) -> None:
        """Ask it to end."""
        if self.process.is_alive() and self.process.pid:
            os.kill(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it as a lost host would."""
        self.process.kill()
        self.process.join()
        self._pipe.close()


def preload(modules: Sequence[str]) -> None:
    """Have one process import modules, from which all others are forked."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(modules))


def _run_on(
    host: Host, pipe: Connection, run: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    network.enter(host.name)
    cpu_quota.join(host.group)
    os.environ["SPOTWRIGHT_AGENT_SOCKET"] = str(host.agent_socket)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to deal with
    run(pipe, *arguments)
