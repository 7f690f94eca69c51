"""Account-specific zone names and the zone ids that are the same for every account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spotwright.adapters.aws.refusals import asking

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import AvailabilityZoneTypeDef

    from spotwright.adapters.aws.connection import RegionClients


@dataclass(frozen=True, slots=True)
class Zones:
    """The zones this account can use in one region; Local Zones have prices of their own."""

    id_by_name: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all of them."""
        return frozenset(self.id_by_name.values())


def fetch_zones(clients: RegionClients) -> Zones:
    """Return the region's zones as this account names them."""
    with asking("ec2:DescribeAvailabilityZones", region=clients.region):
        return read_zones(clients.ec2.describe_availability_zones()["AvailabilityZones"])


def read_zones(answers: Iterable[AvailabilityZoneTypeDef]) -> Zones:
    """Read the zones of a DescribeAvailabilityZones reply."""
    id_by_name, notes = {}, []
    for zone in answers:
        if zone.get("ZoneType", "availability-zone") == "availability-zone":
            id_by_name[zone["ZoneName"]] = zone["ZoneId"]
        else:
            notes.append(
                f"left out zone {zone['ZoneId']}: a {zone['ZoneType']} is priced apart from "
                f"its region"
            )
    return Zones(id_by_name, tuple(notes))


def fetch_offered(clients: RegionClients) -> frozenset[tuple[str, str]]:
    """Return the (instance type, zone id) pairs in which the region offers a type."""
    with asking("ec2:DescribeInstanceTypeOfferings", region=clients.region):
        return _offered(clients.ec2)


def _offered(ec2: EC2Client) -> frozenset[tuple[str, str]]:
    pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone-id"
    )
    return frozenset(
        (offering["InstanceType"], offering["Location"])
        for page in pages
        for offering in page["InstanceTypeOfferings"]
    )
