"""A measured campaign: how many spot nodes of one type in one zone could be had over time."""

from dataclasses import dataclass
from enum import StrEnum

from spotwright.simulator.series import Series


class CampaignKind(StrEnum):
    """What was observed."""

    AVAILABILITY = "availability"  # whether so many nodes could be had
    PREEMPTION = "preemption"  # nodes that were kept running, and started again after each loss
    CLUSTER_SIZE = "cluster_size"  # nodes that a cluster held


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """One series of a campaign."""

    name: str
    source: str
    kind: CampaignKind
    zone: str  # as its authors' account named it; empty: not told
    instance_type: str  # empty: not told
    target_nodes: int  # that were asked for
    nodes: Series

    def __post_init__(self) -> None:
        if self.target_nodes < 1:
            raise ValueError(f"target_nodes must be at least 1, got {self.target_nodes}")
