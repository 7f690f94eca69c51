"""Calls about agents, and about the health of the daemon itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from spotwright.adapters.grpc.messages.probe import probe_from_proto
from spotwright.client.calls import Call, StreamCall
from spotwright.domain.telemetry import NetworkProbe, RollupPart, Statistic
from spotwright.v1 import telemetry_pb2

_SERVICE = "/spotwright.v1.TelemetryService"
_SERVING = 1  # of grpc.health.v1
_NOTICES = {
    telemetry_pb2.NOTICE_KIND_HINT: "hint",
    telemetry_pb2.NOTICE_KIND_INTERRUPTION: "interruption",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """An agent and its latest figures, those of its GPUs taken together; None: not known."""

    agent_id: str
    hostname: str
    instance_type: str
    zone: str
    market: str
    job_id: str
    connected: bool
    last_seen: datetime | None
    clock_skew_s: float
    dropped_sample_count: int
    gpu_count: int
    gpu_utilization_fraction: float | None  # mean
    gpu_memory_used_bytes: float | None  # total, as are the rates
    pcie_rx_mbps: float | None
    pcie_tx_mbps: float | None
    network_rx_mbps: float | None
    network_tx_mbps: float | None
    step_s: float | None
    notice: str  # hint or interruption; empty for none
    notice_deadline: datetime | None
    faults: tuple[str, ...]
    data_wait_s: float | None = None  # of the latest step
    step_time: datetime | None = None  # its end
    disk_read_mbps: float | None = None
    latest_probe: NetworkProbe | None = None  # that had a result
    failed_probe: NetworkProbe | None = None  # the latest that had none


class AgentPage(NamedTuple):
    """Some agents of a list, and where the rest goes on; empty at its end."""

    agents: list[AgentStatus]
    next_page_token: str


class RollupPage(NamedTuple):
    """Some intervals of a list, and where the rest goes on; empty at its end."""

    rollups: list[RollupPart]
    next_page_token: str


def list_agents(*, job_id: str = "", page_size: int = 0, page_token: str = "") -> Call[AgentPage]:
    """Ask for agents with their latest figures, by name."""
    return Call(
        method=f"{_SERVICE}/ListAgents",
        request=telemetry_pb2.ListAgentsRequest(
            job_id=job_id, page_size=page_size, page_token=page_token
        ),
        response=telemetry_pb2.ListAgentsResponse,
        read=lambda response: AgentPage(_agents(response), response.next_page_token),
    )


def watch_agents(
    *, job_id: str = "", interval_s: float | None = None
) -> StreamCall[list[AgentStatus]]:
    """Ask for all agents, then again and again for those that changed."""
    return StreamCall(
        method=f"{_SERVICE}/WatchAgents",
        request=telemetry_pb2.WatchAgentsRequest(job_id=job_id, interval_s=interval_s),
        response=telemetry_pb2.WatchAgentsResponse,
        read=_agents,
    )


def list_rollups(
    agent_id: str, *, start: datetime, end: datetime, page_token: str = "", page_size: int = 0
) -> Call[RollupPage]:
    """Ask for what an agent sent, summed up by 10 s, oldest first."""
    request = telemetry_pb2.ListRollupsRequest(
        agent_id=agent_id,
        resolution=telemetry_pb2.ROLLUP_RESOLUTION_TEN_SECONDS,
        page_size=page_size,
        page_token=page_token,
    )
    request.start_time.FromDatetime(start)
    request.end_time.FromDatetime(end)
    return Call(
        method=f"{_SERVICE}/ListRollups",
        request=request,
        response=telemetry_pb2.ListRollupsResponse,
        read=lambda response: RollupPage(
            [_rollup(rollup) for rollup in response.rollups], response.next_page_token
        ),
    )


def send_probe(agent_id: str, peer: str, *, duration_s: float, max_mbps: float) -> Call[str]:
    """Have an agent measure the network to another host; the answer is the command's name."""
    probe = telemetry_pb2.Probe(peer=peer, duration_s=duration_s, max_mbps=max_mbps)
    return Call(
        method=f"{_SERVICE}/SendCommand",
        request=telemetry_pb2.SendCommandRequest(
            agent_id=agent_id, command=telemetry_pb2.Command(probe=probe)
        ),
        response=telemetry_pb2.SendCommandResponse,
        read=lambda response: response.command_id,
    )


def check_health(service: str) -> Call[bool]:
    """Ask whether a service answers, by its full name; empty: the daemon as a whole.

    grpc.health.v1 sends one text and gets one number, as the wrapper types do; its own package is
    not part of the base install.
    """
    return Call(
        method="/grpc.health.v1.Health/Check",
        request=StringValue(value=service),
        response=Int32Value,
        read=lambda response: response.value == _SERVING,
    )


def _agents(
    response: telemetry_pb2.ListAgentsResponse | telemetry_pb2.WatchAgentsResponse,
) -> list[AgentStatus]:
    return [agent_from_proto(agent) for agent in response.agents]


def agent_from_proto(agent: telemetry_pb2.Agent) -> AgentStatus:
    """Return the agent of a message."""
    facts, sample, notice = agent.facts, agent.latest_sample, agent.notice
    return AgentStatus(
        agent_id=facts.agent_id,
        hostname=facts.hostname,
        instance_type=facts.instance_type,
        zone=facts.zone,
        market=facts.market,
        job_id=facts.job_id,
        connected=agent.connected,
        last_seen=_datetime(agent),
        clock_skew_s=agent.clock_skew_s,
        dropped_sample_count=agent.dropped_sample_count,
        gpu_count=len(facts.gpu_names),
        gpu_utilization_fraction=_mean(_told(sample.gpus, "utilization_fraction")),
        gpu_memory_used_bytes=_total(_told(sample.gpus, "memory_used_bytes")),
        pcie_rx_mbps=_total(_told(sample.gpus, "pcie_rx_mbps")),
        pcie_tx_mbps=_total(_told(sample.gpus, "pcie_tx_mbps")),
        network_rx_mbps=_total(_told([sample], "network_rx_mbps")),
        network_tx_mbps=_total(_told([sample], "network_tx_mbps")),
        step_s=agent.latest_step.step_s if agent.HasField("latest_step") else None,
        notice=_NOTICES.get(notice.kind, ""),
        notice_deadline=_from_unix_ms(notice.deadline_unix_ms)
        if notice.HasField("deadline_unix_ms")
        else None,
        faults=tuple(f"{fault.collector}: {fault.problem}" for fault in agent.faults),
        step_time=_from_unix_ms(agent.latest_step.time_unix_ms)
        if agent.latest_step.time_unix_ms
        else None,
        data_wait_s=agent.latest_step.data_wait_s
        if agent.latest_step.HasField("data_wait_s")
        else None,
        disk_read_mbps=_total(_told([sample], "disk_read_mbps")),
        latest_probe=_probe(agent, "latest_probe"),
        failed_probe=_probe(agent, "failed_probe"),
    )


def _probe(
    agent: telemetry_pb2.Agent, field: Literal["latest_probe", "failed_probe"]
) -> NetworkProbe | None:
    if not agent.HasField(field):
        return None
    probe: telemetry_pb2.ProbeResult = getattr(agent, field)
    return probe_from_proto(probe, time=_from_unix_ms(probe.time_unix_ms), where=field)


def _rollup(rollup: telemetry_pb2.Rollup) -> RollupPart:
    """Return the sums of one interval; how many values a figure has is not on the wire."""
    return RollupPart(
        start_unix_s=rollup.start_time.seconds,
        host_sample_count=rollup.host_sample_count,
        gpu_sample_count=rollup.gpu_sample_count,
        step_count=rollup.step_count,
        statistics={
            name: Statistic(1, statistic.mean, statistic.max)
            for name, statistic in rollup.statistics.items()
        },
    )


def _datetime(agent: telemetry_pb2.Agent) -> datetime | None:
    if not agent.HasField("last_seen_time"):
        return None
    return agent.last_seen_time.ToDatetime(tzinfo=UTC)


def _from_unix_ms(time_unix_ms: int) -> datetime:
    return datetime.fromtimestamp(time_unix_ms / 1000, UTC)


def _told(
    samples: Iterable[telemetry_pb2.GpuSample | telemetry_pb2.HostSample], figure: str
) -> list[float]:
    return [getattr(sample, figure) for sample in samples if sample.HasField(figure)]


def _total(values: list[float]) -> float | None:
    return sum(values) if values else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
