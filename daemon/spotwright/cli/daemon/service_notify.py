"""Messages to systemd: ready, alive, stopping (Type=notify)."""

import os
import socket

_MORE_S = 30  # until it has to be asked for again


class ServiceNotify:
    """Tells the service manager how the daemon is; does nothing where there is none."""

    def __init__(self, address: str | None, *, watchdog_usec: str | None = None) -> None:
        self._address = address
        self.watchdog_s = int(watchdog_usec) / 1e6 if watchdog_usec else None

    @classmethod
    def from_environment(cls) -> "ServiceNotify":
        """Return what the service manager that started this process asked for."""
        return cls(os.environ.get("NOTIFY_SOCKET"), watchdog_usec=os.environ.get("WATCHDOG_USEC"))

    def ready(self, status: str) -> None:
        """Tell that the daemon serves."""
        self._send(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Tell that the daemon ends in good order."""
        self._send("STOPPING=1")

    def needs_time(self) -> None:
        """Ask not to be killed for a while, though stopping takes long."""
        self._send(f"EXTEND_TIMEOUT_USEC={_MORE_S * 1_000_000}")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.connect(address)
            out.sendall(message.encode())
