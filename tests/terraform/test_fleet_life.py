"""A fleet rented, changed and given up: the module with the real AWS provider, on an emulator."""

import base64
import email.policy
import gzip

import pytest

from tests.moto_server import MotoServer, moto
from tests.terraform.fleets import Root, fleet, left_behind, pool, wanted_counts
from tests.terraform_tool import require_aws_provider

__all__ = ["moto"]  # a fixture, used by its name

pytestmark = pytest.mark.timeout(600)
ZONES = ("use1-az1", "use1-az2", "use1-az4", "use1-az6")
SERVER = pool("m5.xlarge", "use1-az4", 1, role="ps", market="on-demand")
SMALL = fleet(pool("g5.xlarge", "use1-az4", 3), pool("g4dn.xlarge", "use1-az6", 4), SERVER)


@pytest.fixture(scope="module")
def root(moto: MotoServer, tmp_path_factory: pytest.TempPathFactory) -> Root:
    require_aws_provider()
    return Root(tmp_path_factory.mktemp("fleet"), moto)


def ids(moto: MotoServer) -> set[str]:
    return {instance["InstanceId"] for instance in moto.instances("resnet50")}


def scripts_of(moto: MotoServer, instance_id: str) -> dict[str | None, str]:
    """Return the parts of an instance's user data by file name, as cloud-init finds them."""
    told = moto.client("ec2").describe_instance_attribute(
        InstanceId=instance_id, Attribute="userData"
    )
    text = gzip.decompress(base64.b64decode(told["UserData"]["Value"]))
    message = email.message_from_bytes(text, policy=email.policy.default)
    return {part.get_filename(): part.get_content() for part in message.iter_parts()}


def made_beside_ours(moto: MotoServer) -> None:
    """Make another subnet in a zone of the fleet's, as anybody in the account may."""
    ec2 = moto.client("ec2")
    in_zone = [{"Name": "availability-zone-id", "Values": ["use1-az4"]}]
    (ours,) = ec2.describe_subnets(Filters=in_zone)["Subnets"]
    ec2.create_subnet(
        VpcId=ours["VpcId"],
        CidrBlock="172.31.240.0/24",
        AvailabilityZone=ours["AvailabilityZone"],  # by its id, moto takes it for the default one
    )


def test_a_fleet_lives_through_every_change_and_leaves_nothing(
    root: Root, moto: MotoServer
) -> None:
    root.must("validate")
    root.apply(SMALL)
    assert root.counts() == wanted_counts(SMALL)
    assert root.is_settled()

    nodes = ids(moto)
    ceilings = {
        key: each | {"max_price_usd_per_hour": "0.6"} for key, each in SMALL["pools"].items()
    }
    (image,) = {i["ImageId"] for i in moto.instances("resnet50")}
    made_beside_ours(moto)
    root.set(ami_id=f'"{image}"', tags='{ Team = "vision" }', create_checkpoint_bucket="true")
    root.apply(fleet(ceilings, plan_id="p-2"))
    assert ids(moto) == nodes  # none of this is worth a node
    assert root.is_settled()

    root.set(user_data='{ ps = "#!/bin/sh\\necho é" }')
    root.apply(SMALL)
    assert len(ids(moto) & nodes) == 3 + 4  # another script is another server, and the workers stay
    (server,) = (
        i["InstanceId"] for i in moto.instances("resnet50") if i["InstanceId"] not in nodes
    )
    assert scripts_of(moto, server) == {"user-script": "#!/bin/sh\necho é"}
    assert root.is_settled()

    more = fleet(pool("g5.xlarge", "use1-az4", 60), pool("g4dn.xlarge", "use1-az6", 3), SERVER)
    before = ids(moto)
    root.apply(more)  # 64 nodes: one pool up, the other down
    assert root.counts() == wanted_counts(more)
    assert len(before & ids(moto)) == 3 + 3 + 1  # a replan moves counts and touches no other node
    assert root.is_settled()

    swapped = fleet(pool("g5.2xlarge", "use1-az4", 2), pool("g4dn.xlarge", "use1-az6", 3), SERVER)
    root.apply(swapped)
    assert root.counts() == wanted_counts(swapped)
    assert root.is_settled()

    fewer = fleet(pool("g5.2xlarge", "use1-az4", 2), SERVER)
    root.apply(fewer)
    assert root.counts() == wanted_counts(fewer)

    root.set(ami_names='["no such image"]')
    code, said = root.run("plan", "-input=false")
    assert code == 1
    assert "no image in us-east-1 that is called no such image" in " ".join(said.split())
    root.must("destroy", "-auto-approve", "-input=false")  # which needs no image
    assert set(left_behind(moto).values()) == {0}
    root.set()


def test_a_spot_node_that_is_taken_is_refilled_and_a_server_is_planned_anew(
    root: Root, moto: MotoServer
) -> None:
    root.apply(SMALL)
    by_role: dict[str, str] = {}
    for instance in moto.instances("resnet50"):
        tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
        assert tags["Fleet"] == "resnet50"
        assert tags["Plan"] == "p-1"
        by_role[tags["Role"]] = instance["InstanceId"]

    moto.client("ec2").terminate_instances(InstanceIds=[by_role["worker"]])
    assert root.is_settled()  # the group refills by itself, so Terraform has nothing to do
    assert root.counts() == wanted_counts(SMALL)

    moto.client("ec2").terminate_instances(InstanceIds=[by_role["ps"]])
    assert not root.is_settled()
    root.apply(SMALL)
    assert root.counts() == wanted_counts(SMALL)
    assert root.is_settled()
    root.must("destroy", "-auto-approve", "-input=false")


@pytest.mark.soak
def test_256_nodes_are_rented_scaled_and_given_up(root: Root, moto: MotoServer) -> None:
    many = fleet(
        *(pool(kind, zone, 32) for kind in ("g5.xlarge", "g4dn.xlarge") for zone in ZONES), SERVER
    )
    root.apply(many)
    assert sum(root.counts().values()) == 8 * 32 + 1
    assert root.counts() == wanted_counts(many)
    assert root.is_settled()

    half = fleet(*(pool("g5.xlarge", zone, 32) for zone in ZONES), SERVER)
    root.apply(half)
    assert root.counts() == wanted_counts(half)

    root.must("destroy", "-auto-approve", "-input=false")
    assert set(left_behind(moto).values()) == {0}
