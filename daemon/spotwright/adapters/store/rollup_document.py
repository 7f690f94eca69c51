"""Sums of one interval as bytes: counts, then each figure's number, count, total and largest.

The numbers stand for the figures in every database there is: never change or reuse one.
"""

import struct
from collections.abc import Mapping
from functools import cache

from spotwright.domain.telemetry import RollupPart, Statistic

_NUMBERS = {
    "utilization_fraction": 1,
    "memory_used_bytes": 2,
    "pcie_rx_mbps": 3,
    "pcie_tx_mbps": 4,
    "nvlink_rx_mbps": 5,
    "nvlink_tx_mbps": 6,
    "cpu_fraction": 7,
    "cpu_steal_fraction": 8,
    "network_rx_mbps": 9,
    "network_tx_mbps": 10,
    "rdma_rx_mbps": 11,
    "rdma_tx_mbps": 12,
    "disk_read_mbps": 13,
    "step_s": 14,
    "data_wait_s": 15,
    "compute_s": 16,
    "communication_s": 17,
    "cpu_limit_count": 18,
    "cpu_throttled_fraction": 19,
    "network_reached_mbps": 20,
}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_COUNTS = struct.Struct("<III")
_FIGURE = struct.Struct("<BIdd")

Sums = Mapping[str, tuple[int, float, float]]  # count, total and largest of each figure


def packed(counts: tuple[int, int, int], sums: Sums) -> bytes:
    """Return counts of host samples, GPU samples and steps, and sums, as bytes."""
    values: list[float] = []
    for name, figure in sums.items():
        values += (_NUMBERS[name], *figure)
    return _layout(len(sums)).pack(*counts, *values)


def unpacked(start_unix_s: int, document: bytes) -> RollupPart:
    """Return what `packed` was given."""
    host_count, gpu_count, step_count = _COUNTS.unpack_from(document)
    return RollupPart(
        start_unix_s=start_unix_s,
        host_sample_count=host_count,
        gpu_sample_count=gpu_count,
        step_count=step_count,
        statistics={
            _NAMES[number]: Statistic(count, total, largest)
            for number, count, total, largest in _FIGURE.iter_unpack(document[_COUNTS.size :])
        },
    )


@cache
def _layout(figure_count: int) -> struct.Struct:
    return struct.Struct("<III" + "BIdd" * figure_count)
