"""How fast the network takes what this host sends, told by the kernel's TCP.

Bytes over time say how much was sent, not how fast it could have been: training sends in bursts.
The kernel counts for each connection what was acknowledged and for how long there was something to
send or under way. Of all connections together, in one interval,

    network_reached_mbps = acknowledged bits / longest time of one connection

Connections are used at once, as training uses them; those to this host itself do not count, nor do
intervals in which little was sent. That the kernel takes a receiver for the limit is left alone: it
does so, too, where a whole window waits for the link.
"""

import errno
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from spotwright_agent.collectors.counters import MEGABIT
from spotwright_agent.readings import CollectorError, HostFigures

_LEAST_BYTES = 262_144  # in an interval; less fits into buffers on the way
_LEAST_BUSY_S = 0.005  # the kernel counts in ticks of up to 10 ms
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_NLM_F_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_TCP_ESTABLISHED, _INET_DIAG_INFO = 1, 2
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_ADDRESSES = slice(8, 40)  # of a message: from whom, to whom
_COOKIE = slice(44, 52)
_MESSAGE_BYTES = 72
_ATTRIBUTE = struct.Struct("=HH")
_ACKED, _BUSY = 120, 168  # places in `struct tcp_info`
_COUNT = struct.Struct("=Q")
_RECEIVE_BYTES = 65_536
# What a kernel without this interface, or one that keeps it from us, answers.
_UNKNOWN = {errno.ENOENT, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES}


class _Sent(NamedTuple):
    acked_bytes: int
    busy_s: float


class SentRateCollector:
    """The rate at which data leaves while there is some."""

    name = "sent rate"

    def __init__(self) -> None:
        self._before: dict[bytes, _Sent] = {}
        self._is_unknown = False

    def read(self, now_s: float) -> HostFigures:
        """Return the rate; absent in the first call, and where little was sent."""
        del now_s  # the kernel tells times of its own
        if self._is_unknown:
            return {}
        try:
            now = dict(_connections())
        except OSError as error:
            if error.errno in _UNKNOWN:
                self._is_unknown = True
                return {}
            raise CollectorError(f"connections cannot be listed: {error.strerror}") from error
        before, self._before = self._before, now
        reached_mbps = _rate_mbps(before, now)
        return {} if reached_mbps is None else {"network_reached_mbps": reached_mbps}


def _rate_mbps(before: dict[bytes, _Sent], now: dict[bytes, _Sent]) -> float | None:
    acked_bytes, busy_s = 0, 0.0
    for cookie, sent in now.items():
        old = before.get(cookie)
        if old is not None:
            acked_bytes += max(0, sent.acked_bytes - old.acked_bytes)
            busy_s = max(busy_s, sent.busy_s - old.busy_s)
    if acked_bytes < _LEAST_BYTES or busy_s < _LEAST_BUSY_S:
        return None
    return acked_bytes * 8 / MEGABIT / busy_s


def _connections() -> Iterator[tuple[bytes, _Sent]]:
    """Yield what each connection with another host has sent so far."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as asked:
        for family in (socket.AF_INET, socket.AF_INET6):
            request = _REQUEST.pack(
                family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 1 << _TCP_ESTABLISHED
            )
            size = _HEADER.size + len(request)
            header = _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 0, 0)
            asked.send(header + request)
            yield from _answers(asked)


def _answers(asked: socket.socket) -> Iterator[tuple[bytes, _Sent]]:
    while True:
        data = asked.recv(_RECEIVE_BYTES)
        place = 0
        while place + _HEADER.size <= len(data):
            size, kind, *_ = _HEADER.unpack_from(data, place)
            if kind == _NLMSG_DONE:
                return
            body = data[place + _HEADER.size : place + size]
            if kind == _NLMSG_ERROR:
                code = -struct.unpack_from("=i", body)[0]
                raise OSError(code, errno.errorcode.get(code, "unknown"))
            sent = _sent(body)
            if sent is not None:
                yield body[_COOKIE], sent
            place += max(size + 3 & ~3, _HEADER.size)


def _sent(body: bytes) -> _Sent | None:
    """Return what one connection has sent; None for those that stay on this host."""
    addresses = body[_ADDRESSES]
    if addresses[:16] == addresses[16:]:
        return None
    place = _MESSAGE_BYTES
    while place + _ATTRIBUTE.size <= len(body):
        size, kind = _ATTRIBUTE.unpack_from(body, place)
        if kind == _INET_DIAG_INFO:
            return _of_info(body[place + _ATTRIBUTE.size : place + size])
        place += max(size + 3 & ~3, _ATTRIBUTE.size)
    return None


def _of_info(info: bytes) -> _Sent | None:
    if len(info) < _BUSY + _COUNT.size:
        return None  # kernels before 4.10
    acked, busy_us = (_COUNT.unpack_from(info, place)[0] for place in (_ACKED, _BUSY))
    return _Sent(acked, busy_us / 1e6)
