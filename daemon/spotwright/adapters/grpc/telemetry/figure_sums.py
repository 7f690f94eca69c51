"""Figures of many messages summed up, column by column.

This is what a daemon spends most of its own time on, so a message's fields are fetched all at once
and looked at as columns: 8 GPUs with 12 fields each take about 15 us.
"""

from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter
from typing import Any

from spotwright.domain.telemetry import Statistic


class FigureTable:
    """Fields of one kind of message: those that are summed up, and others that are only checked."""

    def __init__(
        self, *, summed: Sequence[str], checked: Sequence[str], required: Sequence[str] = ()
    ) -> None:
        """Name the fields; `required` are those summed up that a message cannot leave out."""
        self.names = (*summed, *checked)
        self._summed_count, self._required = len(summed), frozenset(required)
        self._values: Callable[[Any], tuple[float, ...]] = attrgetter(*self.names)

    def sums(self, messages: Sequence[Any]) -> dict[str, Statistic] | None:
        """Sum up the figures that are present; None where one is negative, infinite or NaN."""
        found: dict[str, Statistic] = {}
        columns = zip(*map(self._values, messages), strict=True)
        for position, (name, column) in enumerate(zip(self.names, columns, strict=False)):
            smallest, total = min(column), sum(column)
            if not (smallest >= 0 and total < inf):  # false for NaN, too
                return None
            if position >= self._summed_count:
                continue
            if smallest > 0 or name in self._required:
                found[name] = Statistic(len(column), total, max(column))
            elif present := sum(message.HasField(name) for message in messages):
                found[name] = Statistic(present, total, max(column))  # absent ones count as 0
        return found

    def first_bad(self, message: Any) -> str | None:
        """Name the first figure of a message that cannot have been measured."""
        values = zip(self.names, self._values(message), strict=True)
        return next((name for name, value in values if not 0 <= value < inf), None)


GPU_FIGURES = FigureTable(
    summed=(
        "utilization_fraction",
        "memory_used_bytes",
        "pcie_rx_mbps",
        "pcie_tx_mbps",
        "nvlink_rx_mbps",
        "nvlink_tx_mbps",
    ),
    checked=(
        "gpu_index",
        "sm_clock_mhz",
        "throttle_reasons",
        "uncorrected_error_count",
        "last_xid",
        "power_w",
    ),
)
HOST_FIGURES = FigureTable(
    summed=(
        "cpu_fraction",
        "cpu_steal_fraction",
        "network_rx_mbps",
        "network_tx_mbps",
        "rdma_rx_mbps",
        "rdma_tx_mbps",
        "disk_read_mbps",
        "cpu_limit_count",
        "cpu_throttled_fraction",
        "network_reached_mbps",
    ),
    checked=("interval_s", "memory_used_bytes"),
)
# A diverged run has a loss of NaN, and some losses are negative: it is not checked.
STEP_FIGURES = FigureTable(
    summed=("step_s", "data_wait_s", "compute_s", "communication_s"),
    checked=("rank", "step", "samples"),
    required=("step_s",),
)
