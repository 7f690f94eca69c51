"""What the daemon may ask of an agent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSampling:
    """Sample and send at another rate."""

    interval_s: float
    batch_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Tell the training process to save its state."""

    seconds_left: float | None = None  # until the host is gone; None: nothing hurries
    interval_s: float | None = None  # between checkpoints from now on; None: as before


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Measure the network to another host."""

    command_id: str
    peer: str
    duration_s: float
    max_mbps: float


Command = SetSampling | Checkpoint | Probe
