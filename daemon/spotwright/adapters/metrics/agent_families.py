"""Series of agents: one each, and one for each GPU where that was asked for.

They are made anew from what the source tells, so that an agent that is gone leaves nothing behind.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from spotwright.adapters.metrics.figures import AgentFigures, Readings

GONE_AFTER_S = 900.0  # an agent that was silent for longer is left out
_CUT_OFF_AFTER_S = 300.0  # no session is silent for so long: its replica has died
_BYTES_PER_S = 1e6 / 8  # of one mbps
# Not `job`: Prometheus gives every series a label of that name, after its own scrape jobs.
_AGENT_LABELS = ("agent", "job_id", "instance_type", "zone")
_GPU_LABELS = ("agent", "gpu")
_NETWORKS = ("network", "rdma")


def _is_connected(agent: AgentFigures, age_s: float) -> bool:
    return agent.connected and age_s < _CUT_OFF_AFTER_S


_AgentValue = Callable[[AgentFigures, float], float | None]
# Name, what it is, and its value for an agent and the seconds since it was last seen.
_OF_AGENTS: tuple[tuple[str, str, _AgentValue], ...] = (
    ("connected", "A session is open.", _is_connected),
    ("last_seen_age_seconds", "Since its latest batch arrived.", lambda _, age_s: age_s),
    ("clock_skew_seconds", "Its clock less the daemon's.", lambda a, _: a.clock_skew_s),
    ("notice_active", "The cloud said that it may go.", lambda a, _: a.notice_active),
    ("dropped_samples", "Lost from its spool, in this boot.", lambda a, _: a.dropped_sample_count),
    (
        "gpu_utilization_ratio",
        "Share of time in which a kernel ran, mean of its GPUs.",
        lambda a, _: _mean([gpu.get("utilization_fraction") for gpu in a.gpus.values()]),
    ),
    (
        "gpu_memory_used_bytes",
        "GPU memory in use, all its GPUs.",
        lambda a, _: _sum([gpu.get("memory_used_bytes") for gpu in a.gpus.values()]),
    ),
    (
        "pcie_receive_bytes_per_second",
        "From host to GPU, all its GPUs.",
        lambda a, _: _sum([_bytes_per_s(gpu, "pcie_rx_mbps") for gpu in a.gpus.values()]),
    ),
    (
        "pcie_transmit_bytes_per_second",
        "From GPU to host, all its GPUs.",
        lambda a, _: _sum([_bytes_per_s(gpu, "pcie_tx_mbps") for gpu in a.gpus.values()]),
    ),
    (
        "network_receive_bytes_per_second",
        "Network and RDMA devices, inbound.",
        lambda a, _: _sum([_bytes_per_s(a.host, f"{kind}_rx_mbps") for kind in _NETWORKS]),
    ),
    (
        "network_transmit_bytes_per_second",
        "Network and RDMA devices, outbound.",
        lambda a, _: _sum([_bytes_per_s(a.host, f"{kind}_tx_mbps") for kind in _NETWORKS]),
    ),
    ("step_seconds", "Its latest training step.", lambda a, _: a.step.get("step_s")),
)

_OF_GPUS: tuple[tuple[str, str, Callable[[Readings], float | None]], ...] = (
    (
        "utilization_ratio",
        "Share of time in which a kernel ran.",
        lambda g: g.get("utilization_fraction"),
    ),
    ("memory_used_bytes", "Memory in use.", lambda g: g.get("memory_used_bytes")),
    (
        "pcie_receive_bytes_per_second",
        "From host to GPU.",
        lambda g: _bytes_per_s(g, "pcie_rx_mbps"),
    ),
    (
        "pcie_transmit_bytes_per_second",
        "From GPU to host.",
        lambda g: _bytes_per_s(g, "pcie_tx_mbps"),
    ),
    ("power_watts", "Power drawn.", lambda g: g.get("power_w")),
    ("temperature_celsius", "Temperature.", lambda g: g.get("temperature_c")),
)


def agent_families(
    agents: Sequence[AgentFigures], *, now: datetime, per_gpu: bool
) -> Iterator[Metric]:
    """Return the series of the agents that were seen lately, and how many there are."""
    seen = [(agent, age_s) for agent in agents if (age_s := _age_s(agent, now)) <= GONE_AFTER_S]
    connected_count = sum(_is_connected(agent, age_s) for agent, age_s in seen)
    yield GaugeMetricFamily("spotwright_agents", "Agents seen lately.", value=len(seen))
    yield GaugeMetricFamily(
        "spotwright_agents_connected", "Of them, with an open session.", value=connected_count
    )
    labelled = [(_label_values(agent), agent, age_s) for agent, age_s in seen]
    for name, text, value_of in _OF_AGENTS:
        family = GaugeMetricFamily(f"spotwright_agent_{name}", text, labels=_AGENT_LABELS)
        for labels, agent, age_s in labelled:
            _add(family, labels, value_of(agent, age_s))
        yield family
    if per_gpu:
        yield from _gpu_families([agent for agent, _ in seen])


def _gpu_families(agents: Sequence[AgentFigures]) -> Iterator[Metric]:
    labelled = [
        ((agent.facts.agent_id, str(index)), readings)
        for agent in agents
        for index, readings in agent.gpus.items()
    ]
    for name, text, value_of in _OF_GPUS:
        family = GaugeMetricFamily(f"spotwright_gpu_{name}", text, labels=_GPU_LABELS)
        for labels, readings in labelled:
            _add(family, labels, value_of(readings))
        yield family


def _add(family: GaugeMetricFamily, labels: Sequence[str], value: float | None) -> None:
    if value is not None:  # what was not read has no series, rather than a zero
        family.add_metric(labels, float(value))


def _label_values(agent: AgentFigures) -> tuple[str, ...]:
    facts = agent.facts
    return facts.agent_id, facts.job_id, facts.instance_type, facts.zone


def _age_s(agent: AgentFigures, now: datetime) -> float:
    """Return for how long an agent was silent; one that just came has sent nothing yet."""
    if agent.last_seen is None:
        return 0.0 if agent.connected else float("inf")
    return max(0.0, (now - agent.last_seen).total_seconds())


def _bytes_per_s(readings: Readings, name: str) -> float | None:
    mbps = readings.get(name)
    return None if mbps is None else mbps * _BYTES_PER_S


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
