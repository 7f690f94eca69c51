"""Connections that are accepted, each served by a thread of its own."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

MOST_CONNECTIONS = 1024
_ACCEPTS_AGAIN_S = 0.1


class Listener:
    """Accepts until it is closed, whatever befalls a single connection."""

    def __init__(
        self,
        listening: socket.socket,
        serve: Callable[[socket.socket], None],
        *,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        """Begin to accept.

        Args:
            listening: a socket that listens, from now on this listener's own.
            serve: is given each connection, in a thread; it closes it.
            most: connections at a time; who comes beyond these is hung up on.
        """
        self._listening, self._serve, self._most = listening, serve, most
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more; those that are served go on."""
        with self._lock:
            self._is_closed = True
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # which wakes whoever waits in accept
        self._listening.close()

    def join(self) -> None:
        """Wait until nobody is served any more."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                if self._is_closed:
                    return
                time.sleep(_ACCEPTS_AGAIN_S)  # a peer that hung up, or no file number left
                continue
            with self._lock:
                if self._is_closed or len(self._threads) >= self._most:
                    connection.close()
                    continue
                thread = threading.Thread(target=self._run, args=(connection,), daemon=True)
                self._threads.add(thread)
                thread.start()  # in the lock: who joins finds threads that run

    def _run(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())
