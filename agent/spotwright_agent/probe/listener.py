"""The end of a probe that waits to be asked.

Each connection has its own short thread until it proved what it is for. There are few of them: when
one more comes, the oldest has to go, so that connections that say nothing cannot keep others out.
"""

import contextlib
import logging
import socket
import threading

from spotwright_agent.accepting import accepted
from spotwright_agent.probe.address import resolve
from spotwright_agent.probe.channel import Channel, authenticated
from spotwright_agent.probe.errors import ProbeError
from spotwright_agent.probe.patience import Patience
from spotwright_agent.probe.session import Session, asked_terms
from spotwright_agent.probe.terms import (
    ANSWER_S,
    GREETING_CONTROL,
    GREETING_DATA,
    TOKEN_BYTES,
    without_delay,
)
from spotwright_agent.tls_files import TlsFiles

UNPROVED_COUNT = 8
_GOODBYE_S = 1.0
_log = logging.getLogger(__name__)


class ProbeListener:
    """Answers probes of other agents, one at a time."""

    def __init__(self, address: str, *, tls: TlsFiles | None, insecure: bool = False) -> None:
        """Listen at HOST:PORT; port 0 is any that is free.

        Raises:
            ProbeError: the address cannot be used, or others could reach it without TLS.
            OSError: the port is taken.
        """
        place = resolve(address)
        if tls is None and not insecure and not place.is_loopback:
            raise ProbeError(
                f"without TLS probes are answered on loopback only, not on {address}; "
                "set tls_dir, or listen on 127.0.0.1"
            )
        self._tls = tls
        self._busy = threading.Lock()
        self._session: Session | None = None
        self._unproved: dict[socket.socket, None] = {}  # oldest first
        self._lock = threading.Lock()
        self._listening = socket.create_server(
            (place.host, place.port), family=place.family, backlog=2 * UNPROVED_COUNT
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening.getsockname()[1])

    def run(self, stopping: threading.Event) -> None:
        """Answer until asked to stop."""
        for connection in accepted(self._listening, stopping, name="probe"):
            self._start(connection, stopping)
        self._drop_unproved(keep=0)

    def close(self) -> None:
        """Stop listening, where `run` was never called."""
        self._listening.close()

    def _start(self, connection: socket.socket, stopping: threading.Event) -> None:
        self._drop_unproved(keep=UNPROVED_COUNT - 1)
        with self._lock:
            self._unproved[connection] = None
        serving = threading.Thread(
            target=self._serve, args=(connection, stopping), name="probe", daemon=True
        )
        try:
            serving.start()
        except RuntimeError:  # no more threads: TasksMax, for example
            self._proved(connection)
            connection.close()

    def _drop_unproved(self, *, keep: int) -> None:
        with self._lock:
            oldest = list(self._unproved)[: max(0, len(self._unproved) - keep)]
            for connection in oldest:
                del self._unproved[connection]
                with contextlib.suppress(OSError):  # its thread then sees the end, and closes it
                    connection.shutdown(socket.SHUT_RDWR)

    def _proved(self, connection: socket.socket) -> None:
        with self._lock:
            self._unproved.pop(connection, None)

    def _serve(self, connection: socket.socket, stopping: threading.Event) -> None:
        handed_over = False
        try:
            handed_over = self._greet(connection, stopping)
        except (ProbeError, OSError, ValueError) as error:
            _log.debug("probe: %s", error)
        finally:
            self._proved(connection)
            if not handed_over:
                connection.close()

    def _greet(self, connection: socket.socket, stopping: threading.Event) -> bool:
        """Find out what a connection is for; return whether somebody else has it now."""
        without_delay(connection)
        patience = Patience(ANSWER_S, waits_for="the other host", stopping=stopping)
        greeting = _exactly(connection, len(GREETING_CONTROL), patience)
        if greeting == GREETING_CONTROL:
            self._control(connection, patience, stopping)
        elif greeting == GREETING_DATA:
            token = _exactly(connection, TOKEN_BYTES, patience)
            session = self._session
            self._proved(connection)
            return session is not None and session.offer(connection, token)
        return False

    def _control(
        self, connection: socket.socket, patience: Patience, stopping: threading.Event
    ) -> None:
        stream = authenticated(connection, tls=self._tls, listens=True, patience=patience)
        channel = Channel(stream)
        try:
            terms = asked_terms(channel, patience)
            self._proved(connection)
            if not self._busy.acquire(blocking=False):
                raise ProbeError("BUSY: another probe runs; ask again in a few seconds")
            try:
                self._session = Session(channel, stopping=stopping)
                self._session.run(terms)
            finally:
                self._end_session()
        except ProbeError as error:
            patience = Patience(_GOODBYE_S, waits_for="the other host", stopping=stopping)
            channel.send({"problem": str(error)}, patience)
            _wait_for_end(connection, patience)
            raise

    def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
        self._busy.release()


def _exactly(connection: socket.socket, size: int, patience: Patience) -> bytes:
    """Read no byte more: those that follow are TLS, or zeros to be counted."""
    found = b""
    while len(found) < size:
        arrived = patience.receive(connection, size - len(found))
        if not arrived:
            raise ProbeError("the connection ended before it said what it is for")
        found += arrived
    return found


def _wait_for_end(connection: socket.socket, patience: Patience) -> None:
    """Let the other host read what it was told: closing at once could take it back."""
    connection.shutdown(socket.SHUT_WR)
    while patience.receive(connection, 4096):
        pass
