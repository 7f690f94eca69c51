"""Where a program listens."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self

from spotwright.domain.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Address:
    """Where a daemon listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, *, least_port: int = 1) -> Self:
        """Read HOST:PORT; an IPv6 host stands in brackets. Port 0 means any that is free."""
        host, _, port = text.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not bare or (":" in bare) != (host != bare) or not port.isascii() or not port.isdigit():
            raise BadInputError(
                f"{text!r} is no address; write HOST:PORT, such as 127.0.0.1:7443 or [::1]:7443"
            )
        if not least_port <= int(port) < 65536:
            raise BadInputError(f"{text!r}: a port is a number from {least_port} to 65535")
        return cls(bare, int(port))

    @property
    def is_loopback(self) -> bool:
        """Nothing that is sent there leaves this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
