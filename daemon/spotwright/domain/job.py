"""A job as its owner states it: the workload, the goal and the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from spotwright.domain.checks import require_positive
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import Workload


class TargetKind(StrEnum):
    """What the goal counts."""

    LOSS = "loss"
    SAMPLES = "samples"
    STEPS = "steps"
    EPOCHS = "epochs"
    TOKENS = "tokens"


class Placement(StrEnum):
    """How far apart the nodes of one fleet may be."""

    ONE_ZONE = "one-zone"
    ONE_REGION = "one-region"
    ANYWHERE = "anywhere"


class NetworkRate(StrEnum):
    """Which of an instance type's two network figures to plan with."""

    BASELINE = "baseline"
    PEAK = "peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How much training is enough."""

    kind: TargetKind
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What must be reached, by when, for how much, how surely."""

    target: Target
    deadline_s: float | None = None
    budget_usd: float | None = None
    confidence_fraction: float = 0.95

    def __post_init__(self) -> None:
        for name in ("deadline_s", "budget_usd"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        if not 0 <= self.confidence_fraction <= 1:
            raise ValueError(f"confidence_fraction must be 0 to 1, got {self.confidence_fraction}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be rented. Empty sets and None do not restrict."""

    cloud: Cloud = Cloud.AWS
    regions: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()
    instance_types: frozenset[str] = frozenset()
    gpus: frozenset[str] = frozenset()
    markets: frozenset[Market] = frozenset(Market)
    excluded_types: frozenset[str] = frozenset()
    excluded_pools: Mapping[Pool, datetime | None] = field(default_factory=dict)  # None: for ever
    min_count_by_pool: Mapping[Pool, int] = field(default_factory=dict)  # pinned workers
    parameter_server_types: frozenset[str] = frozenset()
    spot_parameter_servers: bool = False
    max_parameter_servers: int = 4
    max_count_by_type: Mapping[str, int] = field(default_factory=dict)
    max_count_per_pool: int | None = None
    max_count_by_pool: Mapping[Pool, int] = field(default_factory=dict)  # what can be had now
    max_vcpus: Mapping[tuple[str, Market], int] = field(default_factory=dict)  # in each region
    max_nodes: int = 64
    max_pools: int | None = None
    min_on_demand_fraction: float = 0.0
    max_price_by_type_usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    max_usd_per_hour: Mapping[Market, float] = field(default_factory=dict)
    placement: Placement = Placement.ONE_REGION
    network: NetworkRate = NetworkRate.BASELINE

    def __post_init__(self) -> None:
        require_positive(self, "max_parameter_servers")
        for pool, count in self.min_count_by_pool.items():
            if count < 1:
                raise ValueError(f"min_count_by_pool must be at least 1, got {count} for {pool}")
        for pool, until in self.excluded_pools.items():
            if until is not None and until.utcoffset() is None:
                raise ValueError(f"excluded_pools needs times with a timezone, got {until}, {pool}")

    def excludes(self, pool: Pool, *, now: datetime | None) -> bool:
        """Tell whether a pool is excluded; of a time not known, every cool-down is still on."""
        if pool not in self.excluded_pools:
            return False
        until = self.excluded_pools[pool]
        return until is None or now is None or now < until


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One job file, read and checked."""

    name: str
    workload: Workload
    goal: Goal
    limits: Limits
