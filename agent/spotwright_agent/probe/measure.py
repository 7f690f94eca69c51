"""The end of a probe that asks."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from spotwright_agent.probe.address import Address, resolve
from spotwright_agent.probe.channel import Channel, authenticated, number
from spotwright_agent.probe.errors import ProbeError
from spotwright_agent.probe.patience import Patience
from spotwright_agent.probe.terms import (
    ANSWER_S,
    GREETING_CONTROL,
    GREETING_DATA,
    ROUND_TRIP_BYTES,
    ROUND_TRIP_COUNT,
    ROUND_TRIPS_S,
    TOKEN_BYTES,
    Terms,
    without_delay,
)
from spotwright_agent.probe.transfer import CONNECTION_COUNT, count_zeros, send_zeros
from spotwright_agent.readings import ProbeResult
from spotwright_agent.tls_files import TlsFiles

_AT_THE_LIMIT_FRACTION = 0.95
_BUSY_CPU_FRACTION = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    sent_mbps: float
    received_mbps: float
    round_trip_s: float
    cpu_fraction: float  # the most that either host used, in either direction

    def limited_by(self, max_mbps: float) -> str:
        """Return what held at least one direction down; empty: the network."""
        if max(self.sent_mbps, self.received_mbps) >= _AT_THE_LIMIT_FRACTION * max_mbps:
            return "rate-limit"
        return "cpu" if self.cpu_fraction > _BUSY_CPU_FRACTION else ""


def measure(
    peer: str,
    *,
    duration_s: float,
    max_mbps: float,
    tls: TlsFiles | None,
    command_id: str = "",
    stopping: threading.Event | None = None,
    insecure: bool = False,
) -> ProbeResult:
    """Measure the network to a host that listens, in both directions; never raise.

    Args:
        peer: HOST, HOST:PORT or [IPV6]:PORT; port 7444 where none is given.
        duration_s: of each direction, 0.2 to 10.
        max_mbps: no faster than this, 1 to 400,000.
        tls: None: no TLS, which only loopback may do without.
        command_id: of the daemon's question; empty: a person asks.
        stopping: when set, the probe ends within a second, with a problem.
        insecure: a person takes it on themselves that other addresses do without TLS too.
    """
    try:
        terms = Terms(duration_s=duration_s, max_mbps=max_mbps)
        place = resolve(peer)
        if tls is None and not insecure and not place.is_loopback:
            raise ProbeError(
                f"without TLS only loopback is probed, and {place.host} is not; set tls_dir, "
                "or take it on yourself with --insecure"
            )
        found = _Probe(place, terms=terms, stopping=stopping).run(tls)
    except (ProbeError, OSError, ValueError) as error:
        return ProbeResult(
            peer=peer, time_unix_ms=_now_unix_ms(), command_id=command_id, problem=_told(error)
        )
    return ProbeResult(
        peer=peer,
        time_unix_ms=_now_unix_ms(),
        command_id=command_id,
        sent_mbps=found.sent_mbps,
        received_mbps=found.received_mbps,
        round_trip_s=found.round_trip_s,
        limited_by=found.limited_by(max_mbps),
    )


class _Probe:
    """One probe of one place."""

    def __init__(self, place: Address, *, terms: Terms, stopping: threading.Event | None) -> None:
        self._place = place
        self._terms = terms
        self._stopping = stopping

    def run(self, tls: TlsFiles | None) -> _Found:
        with self._connected(GREETING_CONTROL) as connection:
            patience = self._patience("the other host")
            stream = authenticated(connection, tls=tls, listens=False, patience=patience)
            channel = Channel(stream)
            token = self._agree(channel, patience)
            round_trip_s = self._round_trip_s(token)
            sent_mbps, their_cpu = self._send(channel, token)
            received_mbps, our_cpu = self._receive(channel, token)
        return _Found(
            sent_mbps=sent_mbps,
            received_mbps=received_mbps,
            round_trip_s=round_trip_s,
            cpu_fraction=max(their_cpu, our_cpu),
        )

    def _agree(self, channel: Channel, patience: Patience) -> bytes:
        terms = self._terms
        asked = {"version": 1, "duration_s": terms.duration_s, "max_mbps": terms.max_mbps}
        channel.send(asked, patience)
        token = bytes.fromhex(str(channel.receive(patience).get("token", "")))
        if len(token) != TOKEN_BYTES:
            raise ProbeError("the other host told no usable token")
        return token

    def _round_trip_s(self, token: bytes) -> float:
        """Return the median; before the load, which would leave full queues behind."""
        taken_s: list[float] = []
        end_s = time.monotonic() + ROUND_TRIPS_S
        with self._connected(GREETING_DATA + token) as connection:
            while len(taken_s) < ROUND_TRIP_COUNT and time.monotonic() < end_s:
                start_s = time.perf_counter()
                self._there_and_back(connection)
                taken_s.append(time.perf_counter() - start_s)
        # The first one waits until the other host has found out what the connection is for.
        later_s = sorted(taken_s[1:] or taken_s)
        return later_s[len(later_s) // 2]

    def _there_and_back(self, connection: socket.socket) -> None:
        patience = self._patience("a small message to come back")
        patience.send(connection, bytes(ROUND_TRIP_BYTES))
        missing = ROUND_TRIP_BYTES
        while missing:
            arrived = patience.receive(connection, missing)
            if not arrived:
                raise ProbeError("the other host ended the data connection")
            missing -= len(arrived)

    def _send(self, channel: Channel, token: bytes) -> tuple[float, float]:
        with self._data_connections(token) as connections:
            our_cpu = send_zeros(
                connections,
                duration_s=self._terms.duration_s,
                max_mbps=self._terms.max_mbps,
                stopping=self._stopping,
            )
        told = channel.receive(self._patience("what the other host counted"))
        return number(told, "mbps"), max(our_cpu, number(told, "cpu_fraction"))

    def _receive(self, channel: Channel, token: bytes) -> tuple[float, float]:
        with self._data_connections(token) as connections:
            mbps, our_cpu = count_zeros(
                connections, duration_s=self._terms.duration_s, stopping=self._stopping
            )
        told = channel.receive(self._patience("the other host to end"))
        return mbps, max(our_cpu, number(told, "cpu_fraction"))

    @contextlib.contextmanager
    def _data_connections(self, token: bytes) -> Iterator[list[socket.socket]]:
        with contextlib.ExitStack() as opened:
            yield [
                opened.enter_context(self._connected(GREETING_DATA + token))
                for _ in range(CONNECTION_COUNT)
            ]

    @contextlib.contextmanager
    def _connected(self, greeting: bytes) -> Iterator[socket.socket]:
        place = (self._place.host, self._place.port)
        with socket.create_connection(place, timeout=ANSWER_S) as connection:
            without_delay(connection)
            self._patience("the other host").send(connection, greeting)
            yield connection

    def _patience(self, waits_for: str) -> Patience:
        return Patience(ANSWER_S, waits_for=waits_for, stopping=self._stopping)


def _told(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: nobody answers probes there; see probe_listen in docs/agent.md"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _now_unix_ms() -> int:
    return time.time_ns() // 1_000_000
