"""Messages to systemd: ready, alive, stopping (Type=notify). Outside systemd they do nothing."""

import os
import socket
from collections.abc import Mapping
from typing import Self


class ServiceNotify:
    """Tells the service manager how the agent is; never waits for it and never fails."""

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return what the service manager that started this process asked for."""
        return cls(environment.get("NOTIFY_SOCKET", ""))

    def ready(self, status: str) -> bool:
        """Tell that the agent samples."""
        return self._send(f"READY=1\nSTATUS={_line(status)}")

    def alive(self, status: str | None = None) -> bool:
        """Feed the watchdog, and tell what `systemctl status` shows if that is new."""
        return self._send("WATCHDOG=1" if status is None else f"WATCHDOG=1\nSTATUS={_line(status)}")

    def stopping(self) -> bool:
        """Tell that the agent ends in good order."""
        return self._send("STOPPING=1")

    def _send(self, message: str) -> bool:
        """Return whether the service manager has the message."""
        if not self._address:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                out.setblocking(False)
                out.sendto(message.encode(), self._address)
        except OSError:  # it is busy or away; sampling goes on, and the next message may arrive
            return False
        return True


def _line(text: str) -> str:
    """Keep a status from being read as further messages."""
    return " ".join(text.split())[:200]
