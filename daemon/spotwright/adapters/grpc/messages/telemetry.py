"""Agents, their figures and commands, to and from the wire."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from spotwright.adapters.grpc.messages.probe import probe_to_proto
from spotwright.domain.errors import BadInputError
from spotwright.domain.telemetry import (
    AgentFacts,
    AgentNotice,
    AgentRecord,
    RollupPart,
    SampleRow,
    StoredBatch,
)
from spotwright.v1 import telemetry_pb2 as v1

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_MAX_LINE, _MAX_TEXT, _MAX_GPU_NAMES = 256, 1_000, 64  # characters, names
_TEXTS = (
    "agent_version", "hostname", "instance_id", "instance_type", "zone", "market", "job_id",
)  # fmt: skip
NOTICE_KINDS = {
    "hint": v1.NOTICE_KIND_HINT,
    "interruption": v1.NOTICE_KIND_INTERRUPTION,
    "withdrawn": v1.NOTICE_KIND_WITHDRAWN,
}
_SAMPLING_S, _BATCH_S = (0.1, 60.0), (1.0, 60.0)
_PROBE_S, _PROBE_MBPS = (0.2, 10.0), (1.0, 400_000.0)  # what agents take
_GPU_COLUMNS = (
    "utilization_fraction", "memory_used_bytes", "pcie_rx_mbps", "pcie_tx_mbps",
    "nvlink_rx_mbps", "nvlink_tx_mbps", "sm_clock_mhz", "throttle_reasons",
    "uncorrected_error_count", "last_xid", "power_w", "temperature_c",
)  # fmt: skip
_HOST_COLUMNS = (
    "cpu_fraction", "cpu_steal_fraction", "memory_used_bytes", "network_rx_mbps",
    "network_tx_mbps", "rdma_rx_mbps", "rdma_tx_mbps", "disk_read_mbps",
)  # fmt: skip


def facts_from_proto(message: v1.AgentFacts) -> AgentFacts:
    """Return who an agent says it is; BadInputError names the field that cannot be right."""
    for name in ("agent_id", "boot_id"):
        if not _ID.fullmatch(getattr(message, name)):
            raise BadInputError(
                f"hello.{name} must be 1 to 128 letters, digits or ._:@- and start with a letter "
                f"or digit, got {getattr(message, name)[:140]!r}"
            )
    for name in _TEXTS:
        _check_line(f"hello.{name}", getattr(message, name))
    if len(message.gpu_names) > _MAX_GPU_NAMES:
        raise BadInputError(
            f"hello.gpu_names has {len(message.gpu_names)} names, "
            f"at most {_MAX_GPU_NAMES} are taken"
        )
    for name in message.gpu_names:
        _check_line("hello.gpu_names", name)
    texts = {name: getattr(message, name) for name in ("agent_id", "boot_id", *_TEXTS)}
    return AgentFacts(**texts, gpu_names=tuple(message.gpu_names))


def _check_line(name: str, text: str) -> None:
    check_text(name, text, most=_MAX_LINE)
    if not text.isprintable():
        raise BadInputError(f"{name} must be at most {_MAX_LINE} printable characters")


def check_text(name: str, text: str, *, most: int = _MAX_TEXT) -> None:
    """Raise BadInputError where a text, such as what a cloud said, is not one to be kept."""
    if len(text) > most or "\0" in text:
        raise BadInputError(f"{name} must be at most {most:,} characters without NUL")


def facts_to_proto(facts: AgentFacts) -> v1.AgentFacts:
    """Return who an agent is."""
    texts = {name: getattr(facts, name) for name in ("agent_id", "boot_id", *_TEXTS)}
    return v1.AgentFacts(**texts, gpu_names=facts.gpu_names)


def agent_to_proto(record: AgentRecord, *, connected: bool) -> v1.Agent:
    """Return an agent and its latest figures."""
    agent = v1.Agent.FromString(record.faults or b"")  # where its faults were kept as a message
    agent.facts.CopyFrom(facts_to_proto(record.facts))
    agent.connected = connected
    agent.clock_skew_s = record.clock_skew_s
    agent.last_sequence = record.last_sequence
    agent.dropped_sample_count = record.dropped_sample_count
    if record.last_seen is not None:
        agent.last_seen_time.FromDatetime(record.last_seen)
    if record.latest_sample is not None:
        agent.latest_sample.MergeFromString(record.latest_sample)
    if record.latest_step is not None:
        agent.latest_step.MergeFromString(record.latest_step)
    if record.notice is not None:
        agent.notice.CopyFrom(notice_to_proto(record.notice))
    if record.latest_probe is not None:
        agent.latest_probe.CopyFrom(probe_to_proto(record.latest_probe))
    if record.failed_probe is not None:
        agent.failed_probe.CopyFrom(probe_to_proto(record.failed_probe))
    return agent


def notice_to_proto(notice: AgentNotice) -> v1.Notice:
    """Return what a cloud said about taking a host away."""
    message = v1.Notice(
        kind=NOTICE_KINDS[notice.kind],
        time_unix_ms=_unix_ms(notice.time),
        source=notice.source,
        detail=notice.detail,
    )
    if notice.deadline is not None:
        message.deadline_unix_ms = _unix_ms(notice.deadline)
    return message


def rollup_to_proto(part: RollupPart) -> v1.Rollup:
    """Return an agent's figures of one interval."""
    rollup = v1.Rollup(
        gpu_sample_count=part.gpu_sample_count,
        host_sample_count=part.host_sample_count,
        step_count=part.step_count,
    )
    rollup.start_time.FromSeconds(part.start_unix_s)
    for name, statistic in part.statistics.items():
        rollup.statistics[name].mean = statistic.mean
        rollup.statistics[name].max = statistic.largest
    return rollup


def command_from_proto(message: v1.Command, *, command_id: str) -> v1.Command:
    """Return a command under its name; BadInputError where no agent could carry it out."""
    command = v1.Command()
    command.CopyFrom(message)
    command.command_id = command_id
    action = command.WhichOneof("action")
    if action is None:
        raise BadInputError("command.action is missing: set_sampling, drain, checkpoint or probe")
    _COMMAND_CHECKS[action](getattr(command, action))
    return command


def _check_sampling(message: v1.Sampling) -> None:
    _within("command.set_sampling.interval_s", message.interval_s, _SAMPLING_S)
    _within("command.set_sampling.batch_s", message.batch_s, _BATCH_S)


def _check_drain(message: v1.Drain) -> None:
    _within("command.drain.reconnect_after_s", message.reconnect_after_s, (0.0, 3600.0))


def _check_checkpoint(message: v1.Checkpoint) -> None:
    if message.HasField("seconds_left"):
        _within("command.checkpoint.seconds_left", message.seconds_left, (0.0, 86_400.0))
    if message.HasField("interval_s"):
        _within("command.checkpoint.interval_s", message.interval_s, (1.0, 86_400.0))


def _check_probe(message: v1.Probe) -> None:
    _check_line("command.probe.peer", message.peer)
    if not message.peer:
        raise BadInputError("command.probe.peer is missing: the address of the other host")
    _within("command.probe.duration_s", message.duration_s, _PROBE_S)
    _within("command.probe.max_mbps", message.max_mbps, _PROBE_MBPS)


_COMMAND_CHECKS: dict[str, Any] = {
    "set_sampling": _check_sampling,
    "drain": _check_drain,
    "checkpoint": _check_checkpoint,
    "probe": _check_probe,
}


def _within(name: str, value: float, limits: tuple[float, float]) -> None:
    low, high = limits
    if not low - 1e-6 <= value <= high + 1e-6:  # 0.1 as a float of 32 bits is not 0.1
        raise BadInputError(f"{name} must be from {low:,g} to {high:,g}, got {value:,g}")


def corrected_samples(batch: StoredBatch) -> list[v1.HostSample]:
    """Return the host samples of a batch at the times that they were corrected to."""
    samples = list(_parsed(batch).samples)
    skew_ms = round(batch.clock_skew_s * 1000)
    for sample in samples:
        sample.time_unix_ms -= skew_ms
    return samples


def rows_of(batch: StoredBatch) -> Iterator[SampleRow]:
    """Return a row for each GPU sample of a batch, and one for a host without GPUs."""
    for sample in corrected_samples(batch):
        start = (*batch.key, sample.time_unix_ms, sample.interval_s)
        host = _present(sample, _HOST_COLUMNS)
        for gpu in sample.gpus:
            yield SampleRow(*start, gpu.gpu_index, *_present(gpu, _GPU_COLUMNS), *host)
        if not sample.gpus:
            yield SampleRow(*start, None, *(None for _ in _GPU_COLUMNS), *host)


def _parsed(batch: StoredBatch) -> v1.Batch:
    try:
        return v1.Batch.FromString(batch.document)
    except DecodeError as problem:
        raise BadInputError(f"batch {batch.key} is stored damaged: {problem}") from problem


def _present(message: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(message, name) if message.HasField(name) else None for name in names)


def unix_ms_of(time: Timestamp, *, absent: int) -> int:
    """Return a time of the wire, or `absent` for a time that is not set."""
    if not time.seconds and not time.nanos:
        return absent
    try:
        return time.ToMilliseconds()
    except ValueError as problem:
        raise BadInputError(f"a time is not within the years 1 to 9999: {problem}") from problem


def _unix_ms(time: datetime) -> int:
    return round(time.astimezone(UTC).timestamp() * 1000)
