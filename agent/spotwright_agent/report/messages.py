"""Readings to messages and commands from them: the only place that knows both.

The daemon ends a session that sends a figure which cannot be right. What it would refuse is left
out here: the figure where it may be absent, the whole sample or step where it may not.
"""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.commands import Checkpoint, Command, Probe, SetSampling
from spotwright_agent.readings import (
    GpuReading,
    HostSample,
    Notice,
    NoticeKind,
    PcieSource,
    ProbeResult,
    StepReading,
)
from spotwright_agent.report.clock import FIRST_UNIX_MS, LAST_UNIX_MS
from spotwright_agent.report.facts import AgentFacts

MAX_GPUS = 64
MAX_LINE, MAX_TEXT = 256, 1_000  # characters
_MAX_FLOAT, _MAX_DOUBLE = 3.4e38, 1e300  # of 32 bits; of 64, with room for sums
_INT32, _INT64 = 2**31, 2**63
_PCIE_SOURCES = {
    PcieSource.COUNTER: v1.PCIE_SOURCE_COUNTER,
    PcieSource.SAMPLED: v1.PCIE_SOURCE_SAMPLED,
}
_NOTICE_KINDS = {
    NoticeKind.HINT: v1.NOTICE_KIND_HINT,
    NoticeKind.INTERRUPTION: v1.NOTICE_KIND_INTERRUPTION,
    NoticeKind.WITHDRAWN: v1.NOTICE_KIND_WITHDRAWN,
}
_GPU_FLOATS = (
    "utilization_fraction", "pcie_rx_mbps", "pcie_tx_mbps", "nvlink_rx_mbps", "nvlink_tx_mbps",
    "sm_clock_mhz", "power_w",
)  # fmt: skip
_GPU_INT64S = ("memory_used_bytes", "throttle_reasons", "uncorrected_error_count")
_HOST_FLOATS = (
    "cpu_fraction", "cpu_steal_fraction", "network_rx_mbps", "network_tx_mbps", "rdma_rx_mbps",
    "rdma_tx_mbps", "disk_read_mbps", "cpu_limit_count", "cpu_throttled_fraction",
    "network_reached_mbps",
)  # fmt: skip
_STEP_FLOATS = ("data_wait_s", "compute_s", "communication_s")


def facts_to_proto(facts: AgentFacts, *, boot_id: str) -> v1.AgentFacts:
    """Return what an agent says of itself."""
    host = facts.host
    return v1.AgentFacts(
        agent_id=facts.agent_id,
        boot_id=boot_id,
        agent_version=_line(facts.agent_version),
        hostname=_line(facts.hostname),
        instance_id=_line(host.instance_id),
        instance_type=_line(host.instance_type),
        zone=_line(host.zone),
        market=_line(host.market),
        job_id=_line(facts.job_id),
        gpu_names=[_line(name) for name in facts.gpu_names[:MAX_GPUS]],
    )


def sample_to_proto(sample: HostSample) -> v1.HostSample | None:
    """Return a sample; None where the daemon would not take it."""
    if not (_is_time(sample.time_unix_ms) and 0 <= sample.interval_s < _MAX_FLOAT):
        return None
    figures: Mapping[str, Any] = sample.figures
    found = {
        name: value
        for name in _HOST_FLOATS
        if (value := figures.get(name)) is not None and 0 <= value < _MAX_FLOAT
    }
    memory_bytes = figures.get("memory_used_bytes")
    if memory_bytes is not None and 0 <= memory_bytes < _INT64:
        found["memory_used_bytes"] = int(memory_bytes)
    gpus = [gpu_to_proto(gpu) for gpu in figures.get("gpus", ())[:MAX_GPUS] if _is_gpu(gpu)]
    return v1.HostSample(
        time_unix_ms=sample.time_unix_ms, interval_s=sample.interval_s, gpus=gpus, **found
    )


def gpu_to_proto(gpu: GpuReading) -> v1.GpuSample:
    """Return one GPU's figures."""
    found: dict[str, Any] = {}
    for name in _GPU_FLOATS:
        value = getattr(gpu, name)
        if value is not None and 0 <= value < _MAX_FLOAT:
            found[name] = value
    for name in _GPU_INT64S:
        value = getattr(gpu, name)
        if value is not None and 0 <= value < _INT64:
            found[name] = value
    if gpu.last_xid is not None and 0 <= gpu.last_xid < _INT32:
        found["last_xid"] = gpu.last_xid
    if gpu.temperature_c is not None and abs(gpu.temperature_c) < _MAX_FLOAT:
        found["temperature_c"] = gpu.temperature_c
    if gpu.pcie_source is not None:
        found["pcie_source"] = _PCIE_SOURCES[gpu.pcie_source]
    return v1.GpuSample(gpu_index=gpu.gpu_index, **found)


def step_to_proto(step: StepReading) -> v1.StepSample | None:
    """Return a step; None where the daemon would not take it."""
    numbers_fit = 0 <= step.rank < _INT32 and 0 <= step.step < _INT64
    if not (_is_time(step.time_unix_ms) and numbers_fit and 0 <= step.step_s < _MAX_FLOAT):
        return None
    found: dict[str, float] = {}
    for name in _STEP_FLOATS:
        value = getattr(step, name)
        if value is not None and 0 <= value < _MAX_FLOAT:
            found[name] = value
    if step.samples is not None and 0 <= step.samples < _MAX_DOUBLE:
        found["samples"] = step.samples
    if step.loss is not None:  # a diverged run has one that is not finite
        found["loss"] = step.loss if abs(step.loss) < _MAX_FLOAT else _wide(step.loss)
    return v1.StepSample(
        time_unix_ms=step.time_unix_ms,
        rank=step.rank,
        step=step.step,
        step_s=step.step_s,
        **found,
    )


def notice_to_proto(notice: Notice) -> v1.Notice:
    """Return a notice; it is always told, so a time that cannot be right is moved."""
    message = v1.Notice(
        kind=_NOTICE_KINDS[notice.kind],
        time_unix_ms=min(max(notice.time_unix_ms, FIRST_UNIX_MS), LAST_UNIX_MS),
        source=text_for_wire(notice.source),
        detail=text_for_wire(notice.detail),
    )
    if notice.deadline_unix_ms is not None and _is_time(notice.deadline_unix_ms):
        message.deadline_unix_ms = notice.deadline_unix_ms
        message.deadline_by_host_clock = notice.deadline_by_host_clock
    return message


def probe_to_proto(probe: ProbeResult) -> v1.ProbeResult:
    """Return what a probe found."""
    message = v1.ProbeResult(
        command_id=_line(probe.command_id),
        peer=_line(probe.peer),
        time_unix_ms=min(max(probe.time_unix_ms, FIRST_UNIX_MS), LAST_UNIX_MS),
        limited_by=_line(probe.limited_by),
        problem=text_for_wire(probe.problem),
    )
    for name in ("sent_mbps", "received_mbps", "round_trip_s"):
        value = getattr(probe, name)
        if value is not None and 0 <= value < _MAX_DOUBLE:
            setattr(message, name, value)
    return message


def sampling_from_proto(message: v1.Sampling) -> SetSampling | None:
    """Return how often to sample and send; None where that is not said."""
    if not (_is_rate(message.interval_s) and _is_rate(message.batch_s)):
        return None
    return SetSampling(interval_s=message.interval_s, batch_s=message.batch_s)


def command_from_proto(message: v1.Command) -> Command | None:
    """Return a command; None where this agent does not know it. A session drains by itself."""
    action = message.WhichOneof("action")
    if action == "set_sampling":
        return sampling_from_proto(message.set_sampling)
    if action == "checkpoint":
        told = message.checkpoint
        return Checkpoint(
            seconds_left=told.seconds_left if told.HasField("seconds_left") else None,
            interval_s=told.interval_s if told.HasField("interval_s") else None,
        )
    if action == "probe":
        return Probe(
            command_id=message.command_id,
            peer=message.probe.peer,
            duration_s=message.probe.duration_s,
            max_mbps=message.probe.max_mbps,
        )
    return None


def text_for_wire(text: str, *, most: int = MAX_TEXT) -> str:
    """Return a text as the daemon takes it: not too long, and UTF-8 without NUL."""
    cut = text[:most].replace("\0", " ")
    return cut.encode("utf-8", "replace").decode("utf-8")


def _line(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text[:MAX_LINE])
    return text_for_wire(printable, most=MAX_LINE)


def _is_gpu(gpu: GpuReading) -> bool:
    return 0 <= gpu.gpu_index < _INT32


def _is_time(unix_ms: int) -> bool:
    return FIRST_UNIX_MS <= unix_ms <= LAST_UNIX_MS


def _is_rate(seconds: float) -> bool:
    return isfinite(seconds) and seconds > 0


def _wide(value: float) -> float:
    """Return a figure that 32 bits do not hold as one that they do."""
    return value if value != value else inf if value > 0 else -inf  # noqa: PLR0124
