"""What a probe may ask for, and how a connection says what it is for."""

import socket
from dataclasses import dataclass

from spotwright_agent.probe.errors import ProbeError

SHORTEST_S, LONGEST_S = 0.2, 10.0
SLOWEST_MBPS, FASTEST_MBPS = 1.0, 400_000.0
ANSWER_S = 5.0  # to prove who one is, to connect, to answer
ROUND_TRIPS_S = 2.0
ROUND_TRIP_COUNT = 50
ROUND_TRIP_BYTES = 16
TOKEN_BYTES = 32
# The first bytes of each connection. Data connections go on with the token.
GREETING_CONTROL = b"SWPC1\n"
GREETING_DATA = b"SWPD1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long a probe takes in each direction, and how fast it may send."""

    duration_s: float
    max_mbps: float

    def __post_init__(self) -> None:
        if not SHORTEST_S <= self.duration_s <= LONGEST_S:
            raise ProbeError(
                f"a probe takes {SHORTEST_S:g} to {LONGEST_S:g} s, asked for {self.duration_s:g}"
            )
        if not SLOWEST_MBPS <= self.max_mbps <= FASTEST_MBPS:
            raise ProbeError(
                f"a probe sends at {SLOWEST_MBPS:g} to {FASTEST_MBPS:g} Mbit/s, "
                f"asked for {self.max_mbps:g}"
            )


def without_delay(connection: socket.socket) -> None:
    """Make a connection send at once, and its calls return at once."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
