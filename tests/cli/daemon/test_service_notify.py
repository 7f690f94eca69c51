import socket
from pathlib import Path

from spotwright.cli.daemon.service_notify import ServiceNotify


def test_who_needs_time_to_stop_asks_in_microseconds(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(10)

        ServiceNotify(address).needs_time()

        assert manager.recv(100) == b"EXTEND_TIMEOUT_USEC=30000000"
