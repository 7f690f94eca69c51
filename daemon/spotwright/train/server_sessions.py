"""Connections of a parameter server: one thread each, which reads a frame and answers it."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spotwright.domain.address import Address
from spotwright.domain.errors import PeerRefusedError
from spotwright.train.listener import Listener
from spotwright.train.publication import Publication
from spotwright.train.secure import accept, check_reachable, listen, server_context
from spotwright.train.server_session import Session
from spotwright.train.updates import Progress, Updates
from spotwright.train.wire import ConnectionLostError, Wire


class ServerSessions:
    """Who is connected, and the listener that lets them in."""

    def __init__(
        self,
        progress: Progress,
        updates: Updates,
        *,
        publication: Publication,
        describe: Callable[[], Mapping[str, Any]],
        tells_members: bool,
    ) -> None:
        self.progress, self.updates, self.publication = progress, updates, publication
        self.describe, self.tells_members = describe, tells_members
        self._listener: Listener | None = None
        self._address: Address | None = None
        self._context: ssl.SSLContext | None = None
        self._wires: set[Wire] = set()
        self._by_worker: dict[str, Session] = {}
        self._is_ending = self._is_closed = False
        self._replaced: set[str] = set()  # processes whose name another took

    @property
    def address(self) -> Address:
        """Where it listens."""
        assert self._address is not None, "the server was not started"
        return self._address

    def start(self, address: Address, *, tls_dir: Path | None) -> None:
        """Listen, and let workers in.

        Raises:
            BadInputError: others than this machine could connect, and no certificates are given.
        """
        check_reachable(address, tls_dir)
        self._context = server_context(tls_dir) if tls_dir else None
        listening = listen(address)
        self._address = Address(*listening.getsockname()[:2])
        self._listener = Listener(listening, self._serve)

    def entered(self, session: Session) -> None:
        """Make a session that of its worker; one of the same process before it has ended.

        Raises:
            PeerRefusedError: another process has taken this worker's name.
        """
        with self.progress.lock:
            former = self._by_worker.get(session.worker)
            if session.nonce in self._replaced:
                raise PeerRefusedError(
                    f"another process has taken the name {session.worker}; give each worker a "
                    "name of its own"
                )
            if former is not None:
                if former.nonce != session.nonce:
                    self._replaced.add(former.nonce)
                former.wire.close()
            self._by_worker[session.worker] = session
            self.updates.connected(session.worker)

    def left(self, session: Session) -> None:
        """Count on a session's worker no longer, unless it is back already."""
        with self.progress.lock:
            if self._by_worker.get(session.worker) is session:
                del self._by_worker[session.worker]
                self.updates.leave(session.worker)
            if self._is_ending and not self._by_worker:
                self.progress.end()
            self.progress.lock.notify_all()

    def is_over_elsewhere(self) -> None:
        """Take no more steps once the last worker has left: others may still push the same step."""
        with self.progress.lock:
            self._is_ending = True

    def workers(self) -> list[str]:
        """Return the names of those that are connected."""
        with self.progress.lock:
            return sorted(self._by_worker)

    def wait_until_all_left(self, timeout_s: float) -> None:
        """Wait until no worker is connected any more."""
        end_s = time.monotonic() + timeout_s
        with self.progress.lock:
            while self._by_worker and (left_s := end_s - time.monotonic()) > 0:
                self.progress.lock.wait(min(left_s, 1.0))

    def close(self) -> None:
        """End every connection and wait for what goes on in them."""
        if self._listener is not None:
            self._listener.close()
        with self.progress.lock:
            self._is_closed = True
            wires = list(self._wires)
        for wire in wires:
            wire.close()
        self.progress.stop()
        if self._listener is not None:
            self._listener.join()

    def _serve(self, connection: socket.socket) -> None:
        try:
            wire = Wire(accept(connection, self._context))
        except (PeerRefusedError, OSError):
            connection.close()
            return
        try:
            with self.progress.lock:
                if self._is_closed:
                    return
                self._wires.add(wire)
            with contextlib.suppress(ConnectionLostError):
                Session(wire, self).run()
        finally:
            wire.close()
            with self.progress.lock:
                self._wires.discard(wire)
