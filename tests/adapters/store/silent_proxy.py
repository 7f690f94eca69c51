"""A way to a server on which bytes can get lost: what is sent is confirmed, and goes nowhere."""

import socket
import threading
from contextlib import suppress
from typing import Self


class SilentProxy:
    """Hands bytes on both ways until told to swallow them."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._swallows = threading.Event()
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    def swallow(self, *, on: bool = True) -> None:
        """Hand nothing on from now on, or hand everything on again."""
        if on:
            self._swallows.set()
        else:
            self._swallows.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to_port))
                self._sockets += [near, far]
                self._start(self._copy, near, far)
                self._start(self._copy, far, near)

    def _start(self, work: object, *sockets: socket.socket) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=sockets)
        self._threads.append(thread)
        thread.start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if not self._swallows.is_set():
                    target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
