"""Two hosts joined by a cable of a known rate and delay: network namespaces of this kernel."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import NamedTuple

from tests.outside_tools import require, require_tool

ADDRESSES = ("10.231.7.1", "10.231.7.2")  # exist only within the two namespaces


class NetworkPair(NamedTuple):
    """The names of the two namespaces."""

    first: str
    second: str


@contextmanager
def network_pair(*, rate: str, delay: str) -> Iterator[NetworkPair]:
    """Join two namespaces; each end sends at `rate`, and what it sends arrives `delay` later."""
    require(os.geteuid() == 0, "making network namespaces needs root")
    ip, tc = str(require_tool("ip")), str(require_tool("tc"))
    pair = NetworkPair(*(f"sw{token_hex(3)}{end}" for end in "ab"))
    try:
        for name in pair:
            _run(ip, "netns", "add", name)
        _run(ip, "link", "add", pair.first, "netns", pair.first, "type", "veth",
             "peer", "name", pair.second, "netns", pair.second)  # fmt: skip
        for name, address in zip(pair, ADDRESSES, strict=True):
            inside = (ip, "netns", "exec", name)
            _run(*inside, ip, "address", "add", f"{address}/24", "dev", name)
            _run(*inside, ip, "link", "set", name, "up")
            _run(*inside, tc, "qdisc", "add", "dev", name, "root", "handle", "1:",
                 "netem", "delay", delay, "limit", "10000")  # fmt: skip
            _run(*inside, tc, "qdisc", "add", "dev", name, "parent", "1:", "handle", "2:",
                 "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")  # fmt: skip
        yield pair
    finally:
        for name in pair:  # takes the cable with it
            subprocess.run([ip, "netns", "delete", name], check=False, capture_output=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    require(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}")
