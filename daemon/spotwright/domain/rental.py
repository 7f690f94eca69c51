"""What was asked of a cloud and what it gave: the two sides of a fleet that is rented."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from spotwright.domain.fleet import FunctionGroup, Role
from spotwright.domain.offer import Market, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPool:
    """One pool of the variables that Terraform rents by."""

    key: str  # role, type, zone and market: the same from plan to plan
    role: Role
    instance_type: str
    zone: str
    market: Market
    node_count: int
    max_price_usd_per_hour: float  # of one node

    @property
    def pool(self) -> Pool:
        """What is offered and revoked together."""
        return Pool(self.instance_type, self.zone, self.market)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFleet:
    """What a file of variables asks for."""

    name: str
    plan_id: str
    region: str
    low_cost_usd: float  # of the whole job
    high_cost_usd: float
    pools: tuple[WantedPool, ...]  # by key
    functions: FunctionGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedNode:
    """One instance that is running or starting, as the cloud tells it."""

    instance_id: str
    pool_key: str | None  # its tag; None: it has none
    instance_type: str
    zone: str
    market: Market
    launch_time: datetime
    group_name: str | None = None  # of the group that keeps it; None: it stands alone

    @property
    def pool(self) -> Pool:
        """What it is billed as."""
        return Pool(self.instance_type, self.zone, self.market)


class RefusalCause(StrEnum):
    """What a cloud lacks that does not start a node."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    PRICE = "price"  # the ceiling is below the market
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a cloud did not start a node."""

    cause: RefusalCause
    text: str  # in the cloud's words, on one line


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedGroup:
    """What the cloud was told to keep running for one pool of workers."""

    name: str
    pool_key: str | None  # its tag; None: it has none
    desired_count: int
    refusal: Refusal | None  # of the last node it tried to start; None: it is not short of any


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedFleet:
    """Everything the cloud runs under a fleet's name."""

    nodes: tuple[GrantedNode, ...]  # by instance id
    groups: tuple[GrantedGroup, ...]  # by pool key; two of a key while one takes over


class RentedKind(StrEnum):
    """What can be rented by itself: a node of a group comes and goes with it."""

    GROUP = "group"
    NODE = "instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnheldRental:
    """Something paid for under a fleet's name that the state of its folder does not hold."""

    kind: RentedKind
    rental_id: str  # the group's name, or the instance's id
    pool_key: str | None  # its tag; None: it has none
    instance_ids: tuple[str, ...]  # what of it runs

    def __str__(self) -> str:
        if self.kind is RentedKind.NODE:
            return f"instance {self.rental_id}"
        count = len(self.instance_ids)
        return f"group {self.rental_id} with {count} node{'' if count == 1 else 's'}"

    def removal_command(self, region: str) -> str:
        """Return what a person runs to be rid of it."""
        if self.kind is RentedKind.NODE:
            what = f"ec2 terminate-instances --instance-ids {self.rental_id}"
        else:
            name = f"--auto-scaling-group-name {self.rental_id}"
            what = f"autoscaling delete-auto-scaling-group --force-delete {name}"
        return f"aws {what} --region {region}"
