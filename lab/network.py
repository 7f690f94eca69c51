"""Hosts as network namespaces on a switch, each behind a link of a stated rate.

    switch (bridge, namespace of the runner) -- port-H ===== eth0 -- namespace of host H

A token bucket at either end of the cable limits what goes up and what comes down. Rates are those
of the wire; of it `PAYLOAD_FRACTION` is left for data once headers are paid.
"""

import ctypes
import os
import subprocess
from pathlib import Path

_MTU = 9001  # as in a VPC of AWS
_HEADERS_BYTES, _FRAME_BYTES = 20 + 32, 14  # IP, TCP with its clock; Ethernet
PAYLOAD_FRACTION = (_MTU - _HEADERS_BYTES) / (_MTU + _FRAME_BYTES)
_BURST, _LONGEST_QUEUE = "64kb", "50ms"
RATES_MBPS = (20.0, 40.0, 50.0, 80.0, 100.0, 200.0, 400.0, 800.0, 1000.0)  # that hosts come with
_SUBNET = "10.77.0"
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000


def address_of(number: int) -> str:
    """Return the address of a host by its number; the runner is number 1."""
    return f"{_SUBNET}.{number}"


class Network:
    """A switch with hosts on it."""

    def __init__(self) -> None:
        """Build the switch in this process's own network namespace."""
        _NAMESPACES.mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "none", str(_NAMESPACES))
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "switch", "mtu", str(_MTU), "type", "bridge")
        _run("ip", "addr", "add", f"{address_of(1)}/24", "dev", "switch")
        _run("ip", "link", "set", "switch", "up")

    def add(self, name: str, number: int) -> None:
        """Connect a host."""
        _run("ip", "netns", "add", name)
        port = ("ip", "link", "add", f"port-{name}", "mtu", str(_MTU), "type", "veth")
        _run(*port, "peer", "name", "eth0", "netns", name, "mtu", str(_MTU))
        _run("ip", "link", "set", f"port-{name}", "master", "switch", "up")
        inside = ("ip", "-n", name)
        _run(*inside, "addr", "add", f"{address_of(number)}/24", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")
        _run(*inside, "link", "set", "lo", "up")
        # Every kernel has it and lets namespaces use it: figures hang on no machine's taste.
        setting = "net.ipv4.tcp_congestion_control=reno"
        _run("ip", "netns", "exec", name, "sysctl", "-qw", setting)

    def set_rate(self, name: str, mbps: float) -> None:
        """Let so much through, up and down; a running transfer feels it at once."""
        bucket = ("tbf", "rate", f"{round(mbps * 1e3)}kbit", "burst", _BURST)
        shape = (*bucket, "latency", _LONGEST_QUEUE)
        _run("tc", "-n", name, "qdisc", "replace", "dev", "eth0", "root", *shape)
        _run("tc", "qdisc", "replace", "dev", f"port-{name}", "root", *shape)

    def cut(self, name: str) -> None:
        """Pull a host's cable."""
        _run("ip", "link", "set", f"port-{name}", "down")

    def mend(self, name: str) -> None:
        """Plug it in again."""
        _run("ip", "link", "set", f"port-{name}", "up")


def enter(name: str) -> None:
    """Move this process, which must not have threads yet, to a host's network."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(_NAMESPACES / name, os.O_RDONLY)
    try:
        if libc.setns(handle, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"no way into the network of {name}")
    finally:
        os.close(handle)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`{' '.join(command)}`: {done.stderr.strip()}")
