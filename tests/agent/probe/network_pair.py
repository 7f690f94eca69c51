"""Two hosts joined by a cable of a known rate and delay.

Each host is a network namespace with a TUN device. The kernel's token bucket sets the rate at which
a device sends; the packets come to this process, which hands each to the other device later.
"""

import collections
import fcntl
import os
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import NamedTuple

from tests.outside_tools import require, require_tool

ADDRESSES = ("10.231.7.1", "10.231.7.2")  # exist only within the two namespaces
_MTU_BYTES = 9000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class NetworkPair(NamedTuple):
    """The names of the two namespaces, and of the device in each."""

    first: str
    second: str


@contextmanager
def network_pair(*, rate: str, delay_s: float) -> Iterator[NetworkPair]:
    """Join two namespaces; each end sends at `rate`, and what it sends arrives `delay_s` later."""
    require(os.geteuid() == 0, "making network namespaces needs root")
    require(os.path.exists("/dev/net/tun"), "there is no /dev/net/tun")
    ip, tc = str(require_tool("ip")), str(require_tool("tc"))
    pair = NetworkPair(*(f"sw{token_hex(3)}{end}" for end in "ab"))
    ends: list[int] = []
    over = threading.Event()
    cable = threading.Thread(target=_carry, args=(ends, delay_s, over))
    try:
        for name, address in zip(pair, ADDRESSES, strict=True):
            _run(ip, "netns", "add", name)
            ends.append(_tun(name))
            _run(ip, "link", "set", name, "netns", name)
            inside = (ip, "-n", name)
            _run(*inside, "address", "add", f"{address}/24", "dev", name)
            _run(*inside, "link", "set", name, "mtu", str(_MTU_BYTES), "up")
            _run(tc, "-n", name, "qdisc", "add", "dev", name, "root",
                 "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")  # fmt: skip
        cable.start()
        yield pair
    finally:
        over.set()
        if cable.ident is not None:
            cable.join()
        for end in ends:
            os.close(end)
        for name in pair:
            subprocess.run([ip, "netns", "delete", name], check=False, capture_output=True)


def _tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return device


def _carry(ends: list[int], delay_s: float, over: threading.Event) -> None:
    under_way: collections.deque[tuple[float, int, bytes]] = collections.deque()
    others = dict(zip(ends, reversed(ends), strict=True))
    while not over.is_set():
        wait_s = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 0.05
        for end in select.select(ends, [], [], wait_s)[0]:
            packet = os.read(end, 2 * _MTU_BYTES)
            under_way.append((time.monotonic() + delay_s, others[end], packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, end, packet = under_way.popleft()
            try:
                os.write(end, packet)
            except OSError:  # that end is down: the packet is lost
                continue


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    require(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}")
