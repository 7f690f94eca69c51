"""A set of nodes to train on, priced."""

from dataclasses import dataclass
from enum import StrEnum

from spotwright.domain.hardware import InstanceType
from spotwright.domain.offer import Market, Offer


class Role(StrEnum):
    """What a node does."""

    WORKER = "worker"
    PS = "ps"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Equal nodes from one pool, in one role."""

    role: Role
    instance_type: InstanceType
    node_count: int
    gpus_per_node: float  # those used; 0 for nodes without GPUs
    offer: Offer | None  # None: nobody rents this out (a bare GPU), so it has no price

    def __post_init__(self) -> None:
        if self.node_count < 1:
            raise ValueError(f"node_count must be at least 1, got {self.node_count}")
        if not 0 <= self.gpus_per_node <= self.instance_type.gpu_count:
            most = self.instance_type.gpu_count
            raise ValueError(f"gpus_per_node must be from 0 to {most:g}, got {self.gpus_per_node}")

    @property
    def device(self) -> str:
        """What computes on these nodes: the GPU's name, or the type's where there is none."""
        return self.instance_type.gpu_name or self.instance_type.name

    @property
    def market(self) -> Market:
        """The market it is rented in; a group without an offer counts as on-demand."""
        return self.offer.market if self.offer else Market.ON_DEMAND

    @property
    def usd_per_hour(self) -> float | None:
        """Price of the whole group, or None when it has none."""
        return self.offer.price_usd_per_hour * self.node_count if self.offer else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionGroup:
    """Equal serverless functions."""

    memory_mb: int
    function_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything one job runs on."""

    nodes: tuple[NodeGroup, ...]
    functions: FunctionGroup | None = None

    @property
    def workers(self) -> tuple[NodeGroup, ...]:
        """The groups that compute."""
        return tuple(g for g in self.nodes if g.role is Role.WORKER)

    @property
    def servers(self) -> tuple[NodeGroup, ...]:
        """The groups that hold parameters."""
        return tuple(g for g in self.nodes if g.role is Role.PS)

    @property
    def usd_per_hour(self) -> float | None:
        """Price of all nodes, or None when any has none."""
        prices = [g.usd_per_hour for g in self.nodes]
        return None if None in prices else sum(p for p in prices if p is not None)
