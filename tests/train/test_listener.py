"""Connections that come, go and are too many."""

import socket
import threading
from collections.abc import Iterator

import pytest

from spotwright.domain.address import Address
from spotwright.train.listener import Listener
from spotwright.train.secure import listen

_END_S = 30.0


class ShortOfNumbers(socket.socket):
    """A listening socket whose first connections cannot be accepted."""

    failures = 3

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(24, "Too many open files")
        return super().accept()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with listen(Address("127.0.0.1", 0)) as made:
        yield made


def _echo(connection: socket.socket) -> None:
    with connection:
        connection.sendall(connection.recv(4))


def test_connections_that_cannot_be_accepted_do_not_end_it(listening: socket.socket) -> None:
    listener = Listener(ShortOfNumbers(fileno=listening.detach()), _echo)
    address = listener._listening.getsockname()
    with socket.create_connection(address, timeout=_END_S) as mine:
        mine.sendall(b"here")
        assert mine.recv(4) == b"here"
    listener.close()
    listener.join()


def test_who_comes_beyond_the_most_is_hung_up_on(listening: socket.socket) -> None:
    address, served = listening.getsockname(), threading.Event()

    def hold(connection: socket.socket) -> None:
        with connection:
            served.set()
            connection.recv(1)

    listener = Listener(listening, hold, most=1)
    with socket.create_connection(address, timeout=_END_S):
        assert served.wait(_END_S)
        with socket.create_connection(address, timeout=_END_S) as second:
            assert second.recv(1) == b""
    listener.close()
    listener.join()


def test_after_closing_nobody_is_let_in(listening: socket.socket) -> None:
    address = listening.getsockname()
    listener = Listener(listening, _echo)
    listener.close()
    listener.join()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=_END_S)
