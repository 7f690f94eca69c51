"""Ports for servers that a test stops and starts again."""

import random
import socket
from contextlib import closing


def stable_port() -> int:
    """Return a free port of loopback below those that the system gives to clients.

    One of the system's own choice could be somebody's else before a server is back on it.
    """
    choose = random.SystemRandom()
    while True:
        port = choose.randrange(20_000, 32_000)
        with closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
