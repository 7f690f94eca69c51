"""What runs in one region under a fleet's tags: instances, groups, and prices in force.

IAM actions it needs to read: ec2:DescribeInstances, ec2:DescribeAvailabilityZones,
ec2:DescribeSpotPriceHistory, autoscaling:DescribeAutoScalingGroups and
autoscaling:DescribeScalingActivities. To end a node of a group:
autoscaling:TerminateInstanceInAutoScalingGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from boto3.session import Session

from spotwright.adapters.aws.connection import connect, connect_scaling
from spotwright.adapters.aws.launch_refusals import latest_refusal
from spotwright.adapters.aws.refusals import asking
from spotwright.adapters.aws.spot_prices import fetch_spot_prices
from spotwright.adapters.aws.zones import Zones, fetch_zones
from spotwright.domain.offer import Market, Pool
from spotwright.domain.rental import GrantedFleet, GrantedGroup, GrantedNode, Refusal

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

_ALIVE = ["pending", "running"]
_GROUP_TAG = "aws:autoscaling:groupName"  # from the first second; Auto Scaling writes it
_STARTING_OR_UP = ("Pending", "InService")  # and Pending:Wait, Pending:Proceed


class AwsRentedFleets:
    """The RentedFleets of an AWS account in one region."""

    def __init__(
        self,
        region: str,
        *,
        clock: Callable[[], datetime],
        open_session: Callable[[], Session] = Session,
    ) -> None:
        """Find the credentials; nothing is asked yet.

        Args:
            region: where the fleets are.
            clock: tells which spot prices are those of now, with a time zone.
            open_session: finds the credentials; by default as the AWS tools do.

        Raises:
            OutsideWorldError: the AWS configuration of this machine cannot be used.
        """
        self._region, self._clock = region, clock
        with asking("credentials and endpoints", region=region):
            session = open_session()
            [self._clients] = connect(session, regions=(region,))
            self._scaling = connect_scaling(session, region=region)
        self._zones: Zones | None = None

    def granted(self, fleet_name: str) -> GrantedFleet:
        """Return what runs or starts under a fleet's name.

        Raises:
            OutsideWorldError: AWS refused or did not answer.
        """
        zones = self._region_zones()
        with asking("ec2:DescribeInstances", region=self._region):
            nodes = [_node(instance, zones) for instance in self._instances(fleet_name)]
        with asking("autoscaling:DescribeAutoScalingGroups", region=self._region):
            found = list(self._groups(fleet_name))
        groups = [self._group(group) for group in found]
        return GrantedFleet(
            nodes=tuple(sorted(nodes, key=lambda node: node.instance_id)),
            groups=tuple(sorted(groups, key=lambda group: (group.pool_key or "", group.name))),
        )

    def spot_prices_usd_per_hour(self, pools: Collection[Pool]) -> Mapping[Pool, float]:
        """Return what spot nodes cost now; a pool without a price is left out.

        Raises:
            OutsideWorldError: AWS refused or did not answer.
        """
        spot = {pool for pool in pools if pool.market is Market.SPOT}
        if not spot:
            return {}
        found = fetch_spot_prices(
            self._clients,
            types={pool.instance_type for pool in spot},
            zones=self._region_zones(),
            now=self._clock(),
        ).usd_per_hour
        return {
            pool: found[pool.instance_type, pool.zone]
            for pool in sorted(spot)
            if (pool.instance_type, pool.zone) in found
        }

    def end_node(self, instance_id: str, *, is_replaced: bool) -> None:
        """End a node of a group, which starts another one or keeps one node less.

        Raises:
            OutsideWorldError: AWS refused or did not answer, or no group has that node.
        """
        with asking("autoscaling:TerminateInstanceInAutoScalingGroup", region=self._region):
            self._scaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=not is_replaced
            )

    def _region_zones(self) -> Zones:
        if self._zones is None:
            self._zones = fetch_zones(self._clients)
        return self._zones

    def _instances(self, fleet_name: str) -> Iterable[InstanceTypeDef]:
        pages = self._clients.ec2.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": "tag:Fleet", "Values": [fleet_name]},
                {"Name": "instance-state-name", "Values": _ALIVE},
            ]
        )
        return (i for page in pages for r in page["Reservations"] for i in r["Instances"])

    def _groups(self, fleet_name: str) -> Iterable[Mapping[str, Any]]:
        pages = self._scaling.get_paginator("describe_auto_scaling_groups").paginate(
            Filters=[{"Name": "tag:Fleet", "Values": [fleet_name]}]
        )
        # A status is there only while a group is being deleted.
        return (g for page in pages for g in page["AutoScalingGroups"] if not g.get("Status"))

    def _group(self, group: Mapping[str, Any]) -> GrantedGroup:
        desired_count = int(group["DesiredCapacity"])
        states = [instance["LifecycleState"] for instance in group["Instances"]]
        is_full = sum(state.startswith(_STARTING_OR_UP) for state in states) >= desired_count
        return GrantedGroup(
            name=group["AutoScalingGroupName"],
            pool_key=_tags(group).get("Pool"),
            desired_count=desired_count,
            refusal=None if is_full else self._refusal(group["AutoScalingGroupName"]),
        )

    def _refusal(self, group_name: str) -> Refusal | None:
        with asking("autoscaling:DescribeScalingActivities", region=self._region):
            pages = self._scaling.get_paginator("describe_scaling_activities").paginate(
                AutoScalingGroupName=group_name
            )
            return latest_refusal(activity for page in pages for activity in page["Activities"])


def _node(instance: InstanceTypeDef, zones: Zones) -> GrantedNode:
    zone_name = instance["Placement"]["AvailabilityZone"]
    is_spot = instance.get("InstanceLifecycle") == "spot"
    return GrantedNode(
        instance_id=instance["InstanceId"],
        pool_key=_tags(instance).get("Pool"),
        instance_type=instance["InstanceType"],
        # The zones of a region are known by id; a Local Zone is none of them and keeps its name.
        zone=zones.id_by_name.get(zone_name, zone_name),
        market=Market.SPOT if is_spot else Market.ON_DEMAND,
        launch_time=instance["LaunchTime"],
        group_name=_tags(instance).get(_GROUP_TAG),
    )


def _tags(thing: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags", ())}
