"""Which daemon a command asks, and as whom."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spotwright.cli.config import read_config

if TYPE_CHECKING:
    from spotwright.client import AioClient, Client

_HERE = "127.0.0.1:7443"  # where `spotwright serve` listens unless told otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonAccess:
    """A daemon and how to reach it."""

    address: str
    tls_dir: Path | None
    token: str | None = field(repr=False)

    def open(self) -> "Client":
        """Return a client that waits for each answer."""
        from spotwright.client import Client  # noqa: PLC0415

        return Client(self.address, tls_dir=self.tls_dir, token=self.token)

    def open_aio(self) -> "AioClient":
        """Return a client whose answers are awaited."""
        from spotwright.client import AioClient  # noqa: PLC0415

        return AioClient(self.address, tls_dir=self.tls_dir, token=self.token)


def daemon_access(daemon: str | None, tls_dir: Path | None) -> DaemonAccess:
    """Choose the daemon of the flag, of the settings, or of this machine.

    A token among the settings is left out without TLS: it would be refused, and it is not needed
    where whoever has an account may do everything.
    """
    config = read_config()
    folder = tls_dir or config.tls_dir
    return DaemonAccess(
        address=daemon or config.daemon or _HERE,
        tls_dir=folder,
        token=config.token if folder else None,
    )
