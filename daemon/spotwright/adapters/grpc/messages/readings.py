"""The latest figures of an agent as plain numbers by name."""

from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.message import Message

from spotwright.domain.telemetry import AgentRecord
from spotwright.v1 import telemetry_pb2 as v1


class Readings(NamedTuple):
    """Figures by their names on the wire; what the agent could not read is absent."""

    host: Mapping[str, float]
    gpus: Mapping[int, Mapping[str, float]]  # by number on the host
    step: Mapping[str, float]


def latest_readings(record: AgentRecord) -> Readings:
    """Return what an agent sent last."""
    sample = v1.HostSample.FromString(record.latest_sample or b"")
    step = v1.StepSample.FromString(record.latest_step or b"")
    gpus = {gpu.gpu_index: _numbers(gpu) for gpu in sample.gpus}
    return Readings(_numbers(sample), gpus, _numbers(step))


def _numbers(message: Message) -> dict[str, float]:
    return {
        field.name: float(value)
        for field, value in message.ListFields()
        if isinstance(value, int | float)
    }
