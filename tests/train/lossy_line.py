"""A TCP line to a server on loopback that can swallow an answer and break."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from spotwright.domain.address import Address


class LossyLine:
    """Passes bytes on, both ways, until it is told to lose what comes back."""

    def __init__(self, server: Address) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._loses = Event()
        self._threads = [Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def lose_next_answer(self) -> None:
        """Break the connection when the server answers the next time, and swallow the answer."""
        self._loses.set()

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection((self._server.host, self._server.port))
                self._sockets += [near, far]
                for source, sink, comes_back in ((near, far, False), (far, near, True)):
                    thread = Thread(
                        target=self._pass_on, args=(source, sink, comes_back), daemon=True
                    )
                    self._threads.append(thread)
                    thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, comes_back: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if comes_back and self._loses.is_set():
                    self._loses.clear()
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def lossy_line(server: Address) -> Iterator[LossyLine]:
    line = LossyLine(server)
    try:
        yield line
    finally:
        line.close()
