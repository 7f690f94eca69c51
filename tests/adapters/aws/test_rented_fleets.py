"""Rented fleets of an emulated AWS, of recorded replies, and of an AWS that is not there."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from boto3.session import Session
from botocore.model import OperationModel
from moto.server import ThreadedMotoServer

from spotwright.adapters.aws.rented_fleets import AwsRentedFleets
from spotwright.domain.errors import CredentialsError, OutsideWorldError
from spotwright.domain.offer import Market, Pool
from tests.adapters.aws.scaling_activities import launch
from tests.contracts.rented_fleets import (  # noqa: F401 - `fleet` is a fixture
    ON_DEMAND,
    SPOT,
    RentedFleetsContract,
    fleet,
)
from tests.fakes.memory_rented_fleets import MemoryRentedFleets
from tests.fakes.recorded_aws import RecordedAws, Refusal

REGION = "us-east-1"
NOW = datetime(2026, 11, 18, 9, 0, tzinfo=UTC)
ZONE_NAMES = {"use1-az4": "us-east-1d", "use1-az6": "us-east-1a"}  # as moto names them
ZONES = {"AvailabilityZones": [{"ZoneName": "us-east-1d", "ZoneId": "use1-az4"}]}


class EmulatedAws(AwsRentedFleets):
    """The adapter under test, with the means to rent."""

    def __init__(self) -> None:
        super().__init__(REGION, clock=lambda: NOW)
        session = Session(region_name=REGION)
        self.ec2, self.scaling = session.client("ec2"), session.client("autoscaling")

    def start(self, fleet_name: str, pool: Pool, *, pool_key: str | None) -> str:
        options: Any = {
            "TagSpecifications": [{"ResourceType": "instance", "Tags": tags(fleet_name, pool_key)}]
        }
        if pool.market is Market.SPOT:
            options["InstanceMarketOptions"] = {"MarketType": "spot"}
        [instance] = self.ec2.run_instances(
            ImageId="ami-12c6146b",
            InstanceType=pool.instance_type,  # type: ignore[arg-type]
            MinCount=1,
            MaxCount=1,
            Placement={"AvailabilityZone": ZONE_NAMES[pool.zone]},
            **options,
        )["Instances"]
        return instance["InstanceId"]

    def end(self, instance_id: str) -> None:
        self.ec2.terminate_instances(InstanceIds=[instance_id])

    def add_group(self, fleet_name: str, *, pool_key: str | None, desired_count: int) -> None:
        name = f"{fleet_name}-{pool_key}"
        options = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.52"}}
        self.ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={
                "ImageId": "ami-12c6146b",
                "InstanceType": "g5.xlarge",
                "InstanceMarketOptions": options,  # type: ignore[typeddict-item]
            },
        )
        self.scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
            MinSize=0,
            MaxSize=100,
            DesiredCapacity=desired_count,
            AvailabilityZones=["us-east-1d"],
            Tags=[{**tag, "PropagateAtLaunch": True} for tag in tags(fleet_name, pool_key)],
        )


def tags(fleet_name: str, pool_key: str | None) -> list[dict[str, str]]:
    values = {"Fleet": fleet_name} | ({"Pool": pool_key} if pool_key else {})
    return [{"Key": key, "Value": value} for key, value in values.items()]


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def cloud(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> EmulatedAws:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    return EmulatedAws()


class TestEmulatedAws(RentedFleetsContract):
    """The contract, through `cloud` above."""


class TestMemoryRentedFleets(RentedFleetsContract):
    @pytest.fixture
    def cloud(self) -> MemoryRentedFleets:
        return MemoryRentedFleets(spot_prices={SPOT: 0.4})


def test_a_group_is_told_with_its_count_and_its_nodes_as_they_are_billed(
    cloud: EmulatedAws,
    fleet: str,  # noqa: F811
) -> None:
    cloud.add_group(fleet, pool_key="w", desired_count=3)

    granted = cloud.granted(fleet)

    [group] = granted.groups
    assert (group.pool_key, group.desired_count, group.refusal) == ("w", 3, None)
    # The emulator drops the template's market: just what an on-demand fallback looks like.
    assert [node.pool for node in granted.nodes] == [
        Pool("g5.xlarge", "use1-az4", Market.ON_DEMAND)
    ] * 3
    assert {node.pool_key for node in granted.nodes} == {"w"}


def test_a_group_that_is_being_deleted_is_left_out() -> None:
    rented, _ = recorded(groups=[group("old", Status="Delete in progress"), group("w")])

    assert [g.pool_key for g in rented.granted("f").groups] == ["w"]


class PagedAws(RecordedAws):
    """Answers each question about instances or groups with one of them at a time."""

    def __init__(self) -> None:
        super().__init__({"DescribeAvailabilityZones": ZONES})
        self.left = {
            "DescribeInstances": ["i-1", "i-2", "i-3"],
            "DescribeAutoScalingGroups": ["a", "b"],
        }

    def open_session(self) -> Session:
        session = super().open_session()
        session.events.register_first("before-call", self._turn_page)
        return session

    def _turn_page(self, *, model: OperationModel, **_: Any) -> None:
        if model.name not in self.left:
            return
        name, *self.left[model.name] = self.left[model.name]
        found: dict[str, Any] = {
            "DescribeInstances": {"Reservations": [{"Instances": [instance(name)]}]},
            "DescribeAutoScalingGroups": {"AutoScalingGroups": [group(name)]},
        }[model.name]
        more = {"NextToken": f"after {name}"} if self.left[model.name] else {}
        self.replies = {**self.replies, model.name: found | more}


def test_every_page_is_read() -> None:
    aws = PagedAws()

    granted = AwsRentedFleets(REGION, clock=lambda: NOW, open_session=aws.open_session).granted("f")

    assert [node.instance_id for node in granted.nodes] == ["i-1", "i-2", "i-3"]
    assert [g.pool_key for g in granted.groups] == ["a", "b"]


def test_only_a_group_that_is_short_of_nodes_is_asked_why() -> None:
    full = group("w", count=1, Instances=[member("InService")])
    short = group("x", count=2, Instances=[member("Pending:Wait"), member("Terminating")])

    rented, aws = recorded(groups=[full, short], activities=[launch("Failed", "no capacity")])

    found = {g.pool_key: g.refusal for g in rented.granted("f").groups}
    assert found["w"] is None
    assert found["x"] is not None
    assert found["x"].text == "no capacity"
    asked = [q["AutoScalingGroupName"] for name, q in aws.asked if "Activities" in name]
    assert asked == ["group-x"]


def test_a_zone_that_the_region_does_not_list_keeps_its_name() -> None:
    rented, _ = recorded(instances=[instance("i-1", zone="us-east-1-bos-1a")])

    assert [node.zone for node in rented.granted("f").nodes] == ["us-east-1-bos-1a"]


def test_missing_credentials_say_how_to_give_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(OutsideWorldError, match="set AWS_PROFILE, or AWS_ACCESS_KEY_ID"):
        AwsRentedFleets(REGION, clock=lambda: NOW).granted("f")


def test_an_endpoint_that_is_down_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(OutsideWorldError, match="check the network") as caught:
        AwsRentedFleets(REGION, clock=lambda: NOW).granted("f")

    assert "do-not-tell" not in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("DescribeAvailabilityZones", "ec2:DescribeAvailabilityZones"),
        ("DescribeInstances", "ec2:DescribeInstances"),
        ("DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingGroups"),
        ("DescribeScalingActivities", "autoscaling:DescribeScalingActivities"),
    ],
)
def test_what_is_not_allowed_is_named(operation: str, action: str) -> None:
    rented, aws = recorded(groups=[group("w", count=1)])
    aws.replies = {**aws.replies, operation: Refusal("AccessDenied")}

    with pytest.raises(CredentialsError, match=f"allow the IAM action {action}"):
        rented.granted("f")


def test_a_node_that_may_not_be_ended_names_the_permission() -> None:
    rented, aws = recorded()
    action = "TerminateInstanceInAutoScalingGroup"
    aws.replies = {**aws.replies, action: Refusal("AccessDenied")}

    with pytest.raises(CredentialsError, match=f"allow the IAM action autoscaling:{action}"):
        rented.end_node("i-1", is_replaced=False)


def recorded(
    *,
    instances: list[dict[str, Any]] | None = None,
    groups: list[dict[str, Any]] | None = None,
    activities: list[dict[str, Any]] | None = None,
) -> tuple[AwsRentedFleets, RecordedAws]:
    aws = RecordedAws(
        {
            "DescribeAvailabilityZones": ZONES,
            "DescribeInstances": {"Reservations": [{"Instances": instances or []}]},
            "DescribeAutoScalingGroups": {"AutoScalingGroups": groups or []},
            "DescribeScalingActivities": {"Activities": activities or []},
        }
    )
    return AwsRentedFleets(REGION, clock=lambda: NOW, open_session=aws.open_session), aws


def instance(instance_id: str, *, zone: str = "us-east-1d") -> dict[str, Any]:
    return {
        "InstanceId": instance_id,
        "InstanceType": "g5.xlarge",
        "Placement": {"AvailabilityZone": zone},
        "LaunchTime": NOW - timedelta(hours=1),
    }


def group(pool_key: str, *, count: int = 0, **others: Any) -> dict[str, Any]:
    return {
        "AutoScalingGroupName": f"group-{pool_key}",
        "DesiredCapacity": count,
        "MinSize": 0,
        "MaxSize": count,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-east-1d"],
        "HealthCheckType": "EC2",
        "CreatedTime": NOW,
        "Instances": [],
        "Tags": [{"Key": "Pool", "Value": pool_key}],
    } | others


def member(state: str) -> dict[str, Any]:
    return {
        "InstanceId": "i-1",
        "AvailabilityZone": "us-east-1d",
        "LifecycleState": state,
        "HealthStatus": "Healthy",
        "ProtectedFromScaleIn": False,
    }
