"""Hosts that play steps of known terms, and what their agents would send of it.

A step waits for input, computes, then copies gradients over PCIe, pushes them, waits for the
servers, and pulls parameters. Links carry bytes only while their own term lasts. Rates are seen as
an agent sees them: bytes of each second. Steps are told with the split that training knows. A host
may begin to exchange while it computes, and then tells all of that, hidden or not.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spotwright.domain.prediction import StepTerms
from spotwright.domain.telemetry import AgentRecord, NetworkProbe, RollupPart, Statistic
from tests.usecases.example_job_run import START, agent_record

START_UNIX_S = int(START.timestamp())
_PARTS = ("data_wait_s", "compute_s", "communication_s")


@dataclass(frozen=True, kw_only=True)
class PlayedHost:
    """One host, its true terms and the true rates of its links."""

    name: str
    terms: StepTerms
    instance_type: str = "g4dn.12xlarge"
    network_mbps: float = 25_000.0
    pcie_mbps: float = 64_000.0
    gpu_count: int = 4
    probe_mbps: float | None = None
    untold: frozenset[str] = frozenset()  # figures that the host does not tell
    noise: float = 0.0
    hidden_s: float = 0.0  # of the exchange, behind compute
    probe_peer: str = "10.0.0.2:7444"

    @property
    def agent(self) -> AgentRecord:
        record = agent_record(self.name)
        probe = None
        if self.probe_mbps is not None:
            probe = NetworkProbe(
                command_id="",
                peer=self.probe_peer,
                time=START,
                sent_mbps=self.probe_mbps,
                received_mbps=1e6,
            )
        facts = replace(record.facts, instance_type=self.instance_type)
        return replace(record, facts=facts, latest_probe=probe)


@dataclass
class _Seconds:
    """Megabits of each second, by figure."""

    length_s: int
    megabits: dict[str, list[float]] = field(default_factory=dict)

    def carry(self, figure: str, start_s: float, end_s: float, mbps: float) -> None:
        bins = self.megabits.setdefault(figure, [0.0] * self.length_s)
        for second in range(int(start_s), min(int(end_s) + 1, self.length_s)):
            within_s = min(end_s, second + 1) - max(start_s, second)
            bins[second] += mbps * max(0.0, within_s)


def play(
    hosts: Sequence[PlayedHost], *, in_step: bool, length_s: int = 300, seed: int = 7
) -> Mapping[str, list[RollupPart]]:
    """Return what each host sums up by 10 s; `in_step`: everybody waits for the slowest."""
    dice = random.Random(seed)
    seconds = {host.name: _Seconds(length_s) for host in hosts}
    steps: dict[str, list[tuple[float, dict[str, float]]]] = {host.name: [] for host in hosts}
    clocks = {host.name: 0.0 for host in hosts}
    while min(clocks.values()) < length_s:
        playing = [h for h in hosts if in_step or clocks[h.name] == min(clocks.values())]
        drawn = {h.name: _drawn(h, dice) for h in playing}
        slowest_s = max(d["input_stall"] + d["compute"] for d in drawn.values())
        for host in playing:
            terms, start_s = drawn[host.name], clocks[host.name]
            busy_s = terms["input_stall"] + terms["compute"]
            ready_s = start_s + (slowest_s if in_step else busy_s)
            hidden_s = min(host.hidden_s, terms["compute"])
            end_s = max(ready_s, _exchange(host, terms, seconds[host.name], ready_s - hidden_s))
            exchange_s = end_s - start_s - busy_s + hidden_s
            parts = (terms["input_stall"], terms["compute"], exchange_s)
            told = {"step_s": end_s - start_s} | dict(zip(_PARTS, parts, strict=True))
            steps[host.name].append((end_s, told))
            clocks[host.name] = end_s
        if in_step:
            clocks = dict.fromkeys(clocks, max(clocks.values()))
    return {h.name: _rolled_up(h, seconds[h.name], steps[h.name], length_s) for h in hosts}


def _drawn(host: PlayedHost, dice: random.Random) -> dict[str, float]:
    return {
        name: seconds * max(0.0, dice.gauss(1.0, host.noise))
        for name, seconds in host.terms.by_name().items()
    }


def _exchange(
    host: PlayedHost, terms: Mapping[str, float], seconds: _Seconds, start_s: float
) -> float:
    """Play what comes after compute; the GPUs of a host share its PCIe."""
    now_s = start_s
    for name, figure, mbps in (
        ("pcie", "pcie_tx_mbps", host.pcie_mbps / host.gpu_count),
        ("network", "network_tx_mbps", host.network_mbps),
        ("ps_service", "", 0.0),
        ("network", "network_rx_mbps", host.network_mbps),
        ("pcie", "pcie_rx_mbps", host.pcie_mbps / host.gpu_count),
        ("nvlink", "", 0.0),
    ):
        both_ways = name in ("pcie", "network")
        end_s = now_s + terms[name] / (2 if both_ways else 1)
        if figure:
            seconds.carry(figure, now_s, end_s, mbps)
        now_s = end_s
    return now_s


def _rolled_up(
    host: PlayedHost,
    seconds: _Seconds,
    steps: Sequence[tuple[float, dict[str, float]]],
    length_s: int,
) -> list[RollupPart]:
    parts = []
    for start in range(0, length_s, 10):
        figures: dict[str, Statistic] = {}
        for name, bins in seconds.megabits.items():
            copies = host.gpu_count if name.startswith("pcie") else 1
            values = bins[start : start + 10] * copies
            figures[name] = Statistic(len(values), sum(values), max(values))
        mine = [told for end_s, told in steps if start <= end_s < start + 10]
        for name in ("step_s", *_PARTS) if mine else ():
            values = [told[name] for told in mine]
            figures[name] = Statistic(len(values), sum(values), max(values))
        kept = {name: value for name, value in figures.items() if name not in host.untold}
        parts.append(
            RollupPart(
                start_unix_s=START_UNIX_S + start,
                host_sample_count=10,
                gpu_sample_count=10 * host.gpu_count,
                step_count=len(mine),
                statistics=kept,
            )
        )
    return parts
