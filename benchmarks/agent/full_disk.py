"""How much a spool takes after days without a daemon, and on a disk that is full."""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from spotwright_agent.readings import GpuReading, HostSample, PcieSource
from spotwright_agent.report.outbox import Outbox
from spotwright_agent.report.spool import Spool, SpoolLimits

_MAX_BYTES, _DISK_BYTES, _MEMORY_BYTES = 16 * 2**20, 2 * 2**20, 8 * 2**20
_BATCH_SAMPLES = 5  # at 1 Hz
_GPUS = tuple(
    GpuReading(
        gpu_index=index,
        utilization_fraction=0.9,
        memory_used_bytes=30 * 2**30,
        pcie_rx_mbps=12_345.6,
        pcie_tx_mbps=4_321.0,
        pcie_source=PcieSource.COUNTER,
        nvlink_rx_mbps=80_000.0,
        nvlink_tx_mbps=80_000.0,
        sm_clock_mhz=1410.0,
        throttle_reasons=0,
        uncorrected_error_count=0,
        power_w=300.0,
        temperature_c=55.0,
    )
    for index in range(8)
)


def print_full_disk(*, quick: bool) -> None:
    """Print the most that was taken of disk and memory."""
    hours = 2 if quick else 72
    lines = [*_days_away(hours)]
    if os.geteuid() == 0:
        lines += _on_a_full_disk(2 if quick else 12)
    else:
        lines.append(("disk full", "not tried: mounting a small disk needs root", "-", "-"))
    what = f"The spool, 8 GPUs at 1 Hz, {hours} h without a daemon, at most {_MAX_BYTES:,} bytes"
    print_table(what, ("figure", "found", "target", "verdict"), lines)


def _days_away(hours: float) -> Iterator[tuple[str, str, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        limits = SpoolLimits(max_bytes=_MAX_BYTES, keep_free_bytes=0)
        spool = Spool(Path(folder) / "spool.db", limits=limits)
        started_s, most_bytes, batch_count = time.process_time(), 0, 0
        for batch_count in _fill(spool, hours):
            if batch_count % 50 == 0:
                most_bytes = max(most_bytes, _disk_bytes(Path(folder)))
        cpu_us = (time.process_time() - started_s) / batch_count * 1e6
        dropped = spool.dropped_total
        spool.close()
    yield "most bytes on disk", f"{most_bytes:,}", *against(most_bytes, _MAX_BYTES)
    yield "samples dropped and counted", f"{dropped:,}", "-", "-"
    yield "CPU us to cut and spool a batch of 5 samples", f"{cpu_us:.0f}", "-", "-"


def _on_a_full_disk(hours: float) -> Iterator[tuple[str, str, str, str]]:
    with _small_disk(_DISK_BYTES) as folder:
        limits = SpoolLimits(keep_free_bytes=0, memory_bytes=_MEMORY_BYTES)
        spool = Spool(folder / "spool.db", limits=limits)
        for _ in _fill(spool, 0.1):
            pass
        before_mb = _peak_mb()
        for _ in _fill(spool, hours):
            pass
        grown_mb, problem = _peak_mb() - before_mb, spool.problem
        kept_bytes = spool.document_bytes
        spool.close()
    most_mb = (_MEMORY_BYTES + _DISK_BYTES) / 1e6 * 2
    yield (
        f"disk of 2 MiB full, {hours} h: memory grew, MB",
        f"{grown_mb:.1f}",
        *against(grown_mb, most_mb),
    )
    yield (
        "the same: bytes kept on disk and in memory",
        f"{kept_bytes:,}",
        *against(kept_bytes, _MEMORY_BYTES + _DISK_BYTES),
    )
    yield "the same: what is told", problem[:60] or "nothing", "-", "-"


def _fill(spool: Spool, hours: float) -> Iterator[int]:
    outbox = Outbox()
    now_ms = time.time_ns() // 1_000_000
    for batch in range(int(hours * 3600 / _BATCH_SAMPLES)):
        for sample in range(_BATCH_SAMPLES):
            outbox.add_sample(
                HostSample(
                    time_unix_ms=now_ms + 1000 * (batch * _BATCH_SAMPLES + sample),
                    interval_s=1.0,
                    figures={"cpu_fraction": 0.5, "network_rx_mbps": 9_800.0, "gpus": _GPUS},
                )
            )
        for parcel in outbox.cut().parcels:
            spool.put(parcel)
        yield batch + 1


def _disk_bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


@contextmanager
def _small_disk(size_bytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder]
        subprocess.run(command, check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)
