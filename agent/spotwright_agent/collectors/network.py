"""Network interfaces of this host, from sysfs: what they are, and how much goes through them."""

import errno
from dataclasses import dataclass
from pathlib import Path

from spotwright_agent.collectors.counters import ByteRates
from spotwright_agent.collectors.kernel_files import KernelFiles
from spotwright_agent.readings import CollectorError, HostFigures

SYSFS = Path("/sys/class/net")
_LOOK_AGAIN_S = 10.0  # for interfaces that came; listing them costs more than reading them
# What sysfs answers about an interface that goes away: no file, no device, or a dead one.
_GONE = {errno.ENOENT, errno.ENODEV, errno.EINVAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceFacts:
    """One physical interface and its byte counters."""

    name: str
    speed_mbps: int | None  # None: the driver does not say, as on most virtual machines
    received_bytes: int
    sent_bytes: int


def read_interfaces(root: Path = SYSFS) -> list[InterfaceFacts]:
    """Return the interfaces that are backed by a device: no loopback, bridge or tunnel."""
    if not root.is_dir():
        return []
    return [facts for path in _backed(root) if (facts := _facts(path)) is not None]


class NetworkCollector:
    """Bytes through all physical interfaces together."""

    name = "network"

    def __init__(self, root: Path = SYSFS) -> None:
        self._root = root
        self._received, self._sent = KernelFiles(), KernelFiles()
        self._received_rates, self._sent_rates = ByteRates(), ByteRates()
        self._look_again_s = float("-inf")

    def read(self, now_s: float) -> HostFigures:
        """Return both rates; absent in the first call."""
        if now_s >= self._look_again_s:
            self._look(now_s)
        received, sent = self._received.counts(), self._sent.counts()
        figures: HostFigures = {}
        rx_mbps = self._received_rates.update_mbps(received, now_s=now_s)
        tx_mbps = self._sent_rates.update_mbps(sent, now_s=now_s)
        if rx_mbps is not None:
            figures["network_rx_mbps"] = rx_mbps
        if tx_mbps is not None:
            figures["network_tx_mbps"] = tx_mbps
        return figures

    def _look(self, now_s: float) -> None:
        try:
            found = _backed(self._root)
        except OSError as error:
            raise CollectorError(f"{self._root} cannot be listed: {error.strerror}") from error
        self._received.keep({path.name: path / "statistics" / "rx_bytes" for path in found})
        self._sent.keep({path.name: path / "statistics" / "tx_bytes" for path in found})
        self._look_again_s = now_s + _LOOK_AGAIN_S


def _backed(root: Path) -> list[Path]:
    return [path for path in sorted(root.iterdir()) if _is_physical(path)]


def _is_physical(path: Path) -> bool:
    # A slave of a bond counts, the bond does not: its bytes are those of its slaves.
    return (path / "device").exists()


def _facts(path: Path) -> InterfaceFacts | None:
    """Return what sysfs tells of one interface; None if it went away while we read."""
    try:
        return InterfaceFacts(
            name=path.name,
            speed_mbps=_speed_mbps(path),
            received_bytes=int((path / "statistics" / "rx_bytes").read_text()),
            sent_bytes=int((path / "statistics" / "tx_bytes").read_text()),
        )
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return None


def _speed_mbps(path: Path) -> int | None:
    try:
        speed = int((path / "speed").read_text())
    except (OSError, ValueError):
        return None
    return speed if speed > 0 else None
