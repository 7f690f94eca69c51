"""Addresses of probes: HOST, HOST:PORT, or an IPv6 address, in brackets where a port follows."""

import ipaddress
import socket
from typing import NamedTuple

from spotwright_agent.probe.errors import ProbeError

DEFAULT_PORT = 7444


class Address(NamedTuple):
    """An address of the network, not a name."""

    family: socket.AddressFamily
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether it never leaves the host."""
        return ipaddress.ip_address(self.host.partition("%")[0]).is_loopback


def resolve(text: str) -> Address:
    """Return the first address of a peer or of a place to listen.

    Raises:
        ProbeError: it is not an address, or the name is not known.
    """
    host, port = _split(text)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise ProbeError(f"{host!r} is not known here: {why}") from error
    family, _, _, _, place = found[0]
    return Address(family, str(place[0]), int(place[1]))


def _split(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise _bad(text)
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
        rest = ":"
    else:  # more colons: an IPv6 address without a port
        host, rest, port = text, "", ""
    if not host or "\0" in host or (rest and not (port.isascii() and port.isdigit())):
        raise _bad(text)
    number = int(port[:6]) if port else DEFAULT_PORT
    if number >= 2**16:
        raise _bad(text)
    return host, number


def _bad(text: str) -> ProbeError:
    return ProbeError(f"{text!r} is not HOST, HOST:PORT or [IPV6]:PORT")
