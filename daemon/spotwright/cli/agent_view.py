"""Agents and their latest figures, for people and as JSON."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spotwright.domain.units import format_bytes, format_duration

if TYPE_CHECKING:
    from spotwright.client.agent_calls import AgentStatus

AGENT_COLUMNS = (
    *("agent", "type", "job", "last seen>", "clock skew>", "GPUs>", "GPU util>", "GPU memory>"),
    *("PCIe rx/tx GB/s>", "net rx/tx Gbit/s>", "step>", "notice"),
)

_OLD_STEP_S = 60.0  # a batch is sent every few seconds


def agent_json(agent: "AgentStatus") -> dict[str, Any]:
    """Return an agent as JSON; what is not known is null."""
    facts = asdict(agent) | {"faults": list(agent.faults)}
    for probe in filter(None, (facts["latest_probe"], facts["failed_probe"])):
        probe["time"] = probe["time"].isoformat()
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in facts.items()
    }


def agent_row(agent: "AgentStatus", now: datetime) -> tuple[str, ...]:
    """Return an agent as a row of AGENT_COLUMNS."""
    memory_bytes = agent.gpu_memory_used_bytes
    utilization = agent.gpu_utilization_fraction
    return (
        agent.agent_id,
        agent.instance_type or "-",
        agent.job_id or "-",
        _seen_text(agent, now),
        "-" if agent.last_seen is None else f"{agent.clock_skew_s:+.1f} s",
        str(agent.gpu_count),
        "-" if utilization is None else f"{utilization:.0%}",
        "-" if memory_bytes is None else format_bytes(memory_bytes),
        _pair(agent.pcie_rx_mbps, agent.pcie_tx_mbps, mbps_per_unit=8000.0),
        _pair(agent.network_rx_mbps, agent.network_tx_mbps, mbps_per_unit=1000.0),
        _step_text(agent, now),
        notice_text(agent, now),
    )


def fault_lines(agent: "AgentStatus") -> list[str]:
    """Return what cannot be read on the host of an agent."""
    return [f"{agent.agent_id}: {fault}" for fault in agent.faults]


def notice_text(agent: "AgentStatus", now: datetime) -> str:
    """Return what the cloud says about taking the host away."""
    if not agent.notice:
        return "-"
    if agent.notice_deadline is None:
        return agent.notice
    left_s = (agent.notice_deadline - now).total_seconds()
    return f"{agent.notice} in {format_duration(left_s)}" if left_s > 0 else f"{agent.notice} due"


def _step_text(agent: "AgentStatus", now: datetime) -> str:
    """Return the latest step, and how old it is where training seems to have stopped."""
    if agent.step_s is None:
        return "-"
    told = format_duration(agent.step_s)
    age_s = 0.0 if agent.step_time is None else (now - agent.step_time).total_seconds()
    is_old = age_s > max(_OLD_STEP_S, 10 * agent.step_s)
    return f"{told}, {format_duration(age_s)} ago" if is_old else told


def _seen_text(agent: "AgentStatus", now: datetime) -> str:
    if agent.last_seen is None:
        return "never"
    age_s = max(0.0, (now - agent.last_seen).total_seconds())
    told = "now" if age_s < 1 else f"{format_duration(age_s)} ago"
    return told if agent.connected else f"{told}, away"


def _pair(rx_mbps: float | None, tx_mbps: float | None, *, mbps_per_unit: float) -> str:
    if rx_mbps is None and tx_mbps is None:
        return "-"
    told = ("-" if mbps is None else f"{mbps / mbps_per_unit:.2f}" for mbps in (rx_mbps, tx_mbps))
    return " / ".join(told)
