"""Batches before they have a number."""

from dataclasses import dataclass
from enum import IntEnum

from spotwright_agent.report.clock import ClockStamp


class ParcelKind(IntEnum):
    """What is in a batch; each kind is in batches of its own."""

    TELEMETRY = 0  # samples and steps: may be joined, and dropped
    STATE = 1  # faults and probes: may be dropped
    NOTICE = 2  # goes first, and is never dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A batch as it is spooled: everything but its number and what is known when it is sent."""

    document: bytes  # a Batch
    kind: ParcelKind
    stamp: ClockStamp
    create_boot_ms: int  # since the kernel of the stamp booted
    sample_count: int = 0  # host samples and steps
    step_count: int = 0  # of these, steps
    first_ms: int = 0  # times of samples and steps
    last_ms: int = 0
