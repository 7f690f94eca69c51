"""One probe, as the listening end sees it."""

import contextlib
import hmac
import os
import queue
import socket
import threading
from collections.abc import Iterator

from spotwright_agent.probe.channel import Channel, number
from spotwright_agent.probe.errors import ProbeError
from spotwright_agent.probe.patience import Patience
from spotwright_agent.probe.terms import ANSWER_S, ROUND_TRIPS_S, TOKEN_BYTES, Terms
from spotwright_agent.probe.transfer import CONNECTION_COUNT, count_zeros, send_zeros


class Session:
    """A probe that this host answers: its token, and the data connections that showed it."""

    def __init__(self, channel: Channel, *, stopping: threading.Event) -> None:
        self._channel = channel
        self._stopping = stopping
        self._token = os.urandom(TOKEN_BYTES)
        self._connections: queue.Queue[socket.socket] = queue.Queue(CONNECTION_COUNT)
        self._lock = threading.Lock()
        self._is_over = False

    def offer(self, connection: socket.socket, token: bytes) -> bool:
        """Take a data connection, if its token is right and one is waited for."""
        if not hmac.compare_digest(token, self._token):
            return False
        with self._lock:
            if self._is_over or self._connections.full():
                return False
            self._connections.put_nowait(connection)
        return True

    def run(self, terms: Terms) -> None:
        """Answer small messages, count what arrives, send as much back.

        Raises:
            ProbeError: the probe broke off.
            OSError: a connection broke.
        """
        self._send(token=self._token.hex())
        with self._taken(1) as (connection,):
            self._echo(connection)
        with self._taken(CONNECTION_COUNT) as connections:
            mbps, cpu_fraction = count_zeros(
                connections, duration_s=terms.duration_s, stopping=self._stopping
            )
        self._send(mbps=mbps, cpu_fraction=cpu_fraction)
        with self._taken(CONNECTION_COUNT) as connections:
            cpu_fraction = send_zeros(
                connections,
                duration_s=terms.duration_s,
                max_mbps=terms.max_mbps,
                stopping=self._stopping,
            )
        self._send(cpu_fraction=cpu_fraction)

    def close(self) -> None:
        """Close what came and was not waited for, and take nothing more."""
        with self._lock:
            self._is_over = True
            while not self._connections.empty():
                self._connections.get_nowait().close()

    def _send(self, **message: float | str) -> None:
        self._channel.send(message, self._patience(ANSWER_S, "the other host"))

    @contextlib.contextmanager
    def _taken(self, count: int) -> Iterator[list[socket.socket]]:
        patience = self._patience(ANSWER_S, "the data connections")
        with contextlib.ExitStack() as closing:
            taken: list[socket.socket] = []
            while len(taken) < count:
                with contextlib.suppress(queue.Empty):
                    connection = self._connections.get(timeout=patience.left_s())
                    taken.append(closing.enter_context(connection))
            yield taken

    def _echo(self, connection: socket.socket) -> None:
        patience = self._patience(ROUND_TRIPS_S + ANSWER_S, "small messages")
        while message := patience.receive(connection, 64):
            patience.send(connection, message)

    def _patience(self, seconds: float, waits_for: str) -> Patience:
        return Patience(seconds, waits_for=waits_for, stopping=self._stopping)


def asked_terms(channel: Channel, patience: Patience) -> Terms:
    """Return what the other host asks for.

    Raises:
        ProbeError: it asks for too much, or does not ask.
    """
    message = channel.receive(patience)
    if message.get("version") != 1:
        raise ProbeError("this agent knows version 1 of the probe; install the same on both hosts")
    return Terms(duration_s=number(message, "duration_s"), max_mbps=number(message, "max_mbps"))
