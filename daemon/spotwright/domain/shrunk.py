"""Hosts that become less while they train: a CPU quota or a network that is cut, not the host."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from spotwright.domain.offer import Pool


class Resource(StrEnum):
    """What of a host can become less."""

    CPU = "cpu"
    NETWORK = "network"


class Part(NamedTuple):
    """Something of a host that is watched."""

    agent_id: str
    resource: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkHost:
    """A host that has less of something than it had."""

    part: Part
    before: float  # CPUs, or Mbit/s that were reached
    now: float
    slowed: float  # times as long as before: its compute, or its exchange

    @property
    def text(self) -> str:
        """The same in words."""
        unit = "CPUs" if self.part.resource is Resource.CPU else "Mbit/s of network"
        return f"{self.now:.3g} of {self.before:.3g} {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """What is left of a node."""

    compute_factor: float = 1.0  # its compute takes so many times as long
    network_mbps: float | None = None  # that it reaches; None: as its type promises

    def __post_init__(self) -> None:
        if not self.compute_factor > 0:
            raise ValueError(f"compute_factor must be positive, got {self.compute_factor}")
        if self.network_mbps is not None and not self.network_mbps > 0:
            raise ValueError(f"network_mbps must be positive, got {self.network_mbps}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkNode:
    """A worker that has become less, as a decision is made about it."""

    node_id: str
    pool: Pool
    shrinkage: Shrinkage
    text: str  # what it has left
