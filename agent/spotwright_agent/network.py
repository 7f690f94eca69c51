"""Network interfaces of this host, from sysfs."""

import errno
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys/class/net")
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
    backed = [path for path in sorted(root.iterdir()) if (path / "device").exists()]
    return [facts for path in backed if (facts := _facts(path)) is not None]


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
