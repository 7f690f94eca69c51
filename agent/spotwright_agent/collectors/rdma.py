"""RDMA devices of this host, from sysfs: EFA and InfiniBand or RoCE adapters.

Their traffic goes around the kernel, so that the counters of network interfaces miss it. Per port:

    EFA    hw_counters/tx_bytes, rx_bytes: everything that the device moved. The bytes of sends,
           reads and writes are parts of these, so that they count only where these are missing.
    mlx5   counters/port_xmit_data, port_rcv_data: 4-byte words.
"""

from dataclasses import dataclass
from pathlib import Path

from spotwright_agent.collectors.counters import ByteRates
from spotwright_agent.collectors.kernel_files import KernelFiles
from spotwright_agent.readings import CollectorError, HostFigures

SYSFS = Path("/sys/class/infiniband")
_LOOK_AGAIN_S = 10.0
_WORD_BYTES = 4
# What an EFA device did for others counts, too: it answers their reads and takes their writes.
_EFA_SENT = ("send_bytes", "rdma_write_bytes", "rdma_read_resp_bytes")
_EFA_RECEIVED = ("recv_bytes", "rdma_read_bytes", "rdma_write_recv_bytes")


@dataclass(frozen=True, slots=True)
class _Source:
    """Counters of one direction of a port, whose sum times the unit is its bytes."""

    paths: tuple[Path, ...]
    unit_bytes: int


class RdmaCollector:
    """Bytes through all RDMA devices together."""

    name = "rdma"

    def __init__(self, root: Path = SYSFS) -> None:
        self._root = root
        self._received, self._sent = _Direction(), _Direction()
        self._look_again_s = float("-inf")

    def read(self, now_s: float) -> HostFigures:
        """Return both rates; absent in the first call, and on hosts without such devices."""
        if now_s >= self._look_again_s:
            self._look(now_s)
        figures: HostFigures = {}
        if (rx_mbps := self._received.read_mbps(now_s)) is not None:
            figures["rdma_rx_mbps"] = rx_mbps
        if (tx_mbps := self._sent.read_mbps(now_s)) is not None:
            figures["rdma_tx_mbps"] = tx_mbps
        return figures

    def _look(self, now_s: float) -> None:
        ports = rdma_ports(self._root)
        self._sent.keep([_source(port, "tx_bytes", _EFA_SENT, "port_xmit_data") for port in ports])
        self._received.keep(
            [_source(port, "rx_bytes", _EFA_RECEIVED, "port_rcv_data") for port in ports]
        )
        self._look_again_s = now_s + _LOOK_AGAIN_S


def rdma_ports(root: Path = SYSFS) -> list[Path]:
    """Return the ports of RDMA devices; none where the host has no such class.

    Raises:
        CollectorError: there is such a class, but it cannot be listed.
    """
    try:
        return sorted(root.glob("*/ports/*")) if root.is_dir() else []
    except OSError as error:
        raise CollectorError(f"{root} cannot be listed: {error.strerror}") from error


def _source(port: Path, whole: str, parts: tuple[str, ...], words: str) -> _Source | None:
    hardware = port / "hw_counters"
    if (hardware / whole).exists():
        return _Source((hardware / whole,), 1)
    if (port / "counters" / words).exists():
        return _Source((port / "counters" / words,), _WORD_BYTES)
    found = tuple(hardware / part for part in parts if (hardware / part).exists())
    return _Source(found, 1) if found else None


class _Direction:
    """All ports in one direction."""

    def __init__(self) -> None:
        self._files, self._rates = KernelFiles(), ByteRates()
        self._units: dict[str, int] = {}

    def keep(self, sources: list[_Source | None]) -> None:
        told = [source for source in sources if source is not None]
        self._units = {str(path): told_.unit_bytes for told_ in told for path in told_.paths}
        self._files.keep({name: Path(name) for name in self._units})

    def read_mbps(self, now_s: float) -> float | None:
        counts = self._files.counts()
        in_bytes = {name: count * self._units[name] for name, count in counts.items()}
        return self._rates.update_mbps(in_bytes, now_s=now_s)
