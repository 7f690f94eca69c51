"""What one host tells about its steps, from the sums of its latest minutes.

    data_wait_s, compute_s, communication_s   means over steps, as training tells them
    megabits of a step = mean rate * step_s

Where training tells two of the three parts, the third is the rest of the step. Only intervals of
which steps tell count, those that ended in them or lasted through them, so that pauses do not
dilute the rates.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from spotwright.domain.telemetry import AgentRecord, NetworkProbe, RollupPart, Statistic

_PARTS = ("data_wait_s", "compute_s", "communication_s")
_PROBE_HOLDS = timedelta(hours=1)  # neighbours and burst credits change what a network can do


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a link carries; of PCIe and NVLink, that of one GPU."""

    rx_megabits: float  # in one step
    tx_megabits: float
    rx_largest_mbps: float  # in one sample
    tx_largest_mbps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSteps:
    """The steps of one host; None where it does not tell."""

    agent_id: str
    instance_type: str
    step_count: int
    covered_s: float  # of the intervals that steps tell of
    sample_s: float  # between samples of rates
    step_s: float
    data_wait_s: float | None = None
    compute_s: float | None = None
    communication_s: float | None = None
    network: Traffic | None = None
    pcie: Traffic | None = None
    nvlink: Traffic | None = None
    probe_mbps: float | None = None  # what the network can do

    @property
    def busy_s(self) -> float | None:
        """What a step takes before it needs anybody else."""
        if self.compute_s is None:
            return None
        return self.compute_s + (self.data_wait_s or 0.0)


def host_steps(
    agent: AgentRecord, parts: Sequence[RollupPart], *, resolution_s: float, end: datetime
) -> HostSteps | None:
    """Sum up intervals of one host up to `end`; None where no step ended in them."""
    stepping = _stepping(parts)
    if not stepping:
        return None
    figures = _merged(stepping)
    step_s, covered_s = figures["step_s"].mean, len(stepping) * resolution_s
    sample_count = sum(part.host_sample_count for part in stepping)
    return HostSteps(
        agent_id=agent.facts.agent_id,
        instance_type=agent.facts.instance_type,
        step_count=figures["step_s"].value_count,
        covered_s=covered_s,
        sample_s=covered_s / max(1, sample_count),
        step_s=step_s,
        **_split(figures, step_s),
        network=_together(_traffic(figures, "network", step_s), _traffic(figures, "rdma", step_s)),
        pcie=_traffic(figures, "pcie", step_s),
        nvlink=_traffic(figures, "nvlink", step_s),
        probe_mbps=_probed_mbps(agent.latest_probe, end),
    )


def _probed_mbps(probe: NetworkProbe | None, end: datetime) -> float | None:
    """Return what the network could do about then, as far as a probe went over it."""
    if probe is None or probe.stays_on_host or abs(end - probe.time) > _PROBE_HOLDS:
        return None
    return probe.attainable_mbps


def _stepping(parts: Sequence[RollupPart]) -> list[RollupPart]:
    """Return the intervals in which steps ended, and those before that the longest began before."""
    kept: list[RollupPart] = []
    since_unix_s = math.inf  # when the longest step that ended later began
    for part in sorted(parts, key=lambda part: part.start_unix_s, reverse=True):
        step = part.statistics.get("step_s")
        if step is not None:
            since_unix_s = min(since_unix_s, part.start_unix_s - step.largest)
        if step is not None or part.start_unix_s >= since_unix_s:
            kept.append(part)
    return kept


def _merged(parts: Iterable[RollupPart]) -> dict[str, Statistic]:
    figures: dict[str, Statistic] = {}
    for part in parts:
        for name, statistic in part.statistics.items():
            mine = figures.get(name)
            figures[name] = statistic if mine is None else mine.merged(statistic)
    return figures


def _split(figures: dict[str, Statistic], step_s: float) -> dict[str, float | None]:
    told = {name: figures[name].mean for name in _PARTS if name in figures}
    missing = [name for name in _PARTS if name not in told]
    if len(missing) == 1:
        told[missing[0]] = max(0.0, step_s - sum(told.values()))
    return {name: told.get(name) for name in _PARTS}


def _traffic(figures: dict[str, Statistic], link: str, step_s: float) -> Traffic | None:
    rx, tx = figures.get(f"{link}_rx_mbps"), figures.get(f"{link}_tx_mbps")
    if rx is None or tx is None:
        return None
    return Traffic(
        rx_megabits=rx.mean * step_s,
        tx_megabits=tx.mean * step_s,
        rx_largest_mbps=rx.largest,
        tx_largest_mbps=tx.largest,
    )


def _together(one: Traffic | None, other: Traffic | None) -> Traffic | None:
    """Add what bypasses the usual counters; the largest sums are not known, so the larger stays."""
    if one is None or other is None:
        return one or other
    return Traffic(
        rx_megabits=one.rx_megabits + other.rx_megabits,
        tx_megabits=one.tx_megabits + other.tx_megabits,
        rx_largest_mbps=max(one.rx_largest_mbps, other.rx_largest_mbps),
        tx_largest_mbps=max(one.tx_largest_mbps, other.tx_largest_mbps),
    )
