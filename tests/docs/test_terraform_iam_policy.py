"""docs/terraform-iam-policy.json allows what a fleet's life calls for, and little more."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.docs.record_aws_calls import RECORDED, kinds_of_resources

POLICY = Path(__file__).parents[2] / "docs" / "terraform-iam-policy.json"
STATEMENTS: list[dict[str, Any]] = json.loads(POLICY.read_text())["Statement"]
_MOST_CHARACTERS = 6144  # of a managed policy, white space left out

# Calls whose permission has another name.
ACTION_OF = {
    "s3:DeleteBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:DeleteBucketLifecycle": "s3:PutLifecycleConfiguration",
    "s3:DeletePublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3:GetBucketAccelerateConfiguration": "s3:GetAccelerateConfiguration",
    "s3:GetBucketCors": "s3:GetBucketCORS",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:GetBucketReplication": "s3:GetReplicationConfiguration",
    "s3:GetObjectLockConfiguration": "s3:GetBucketObjectLockConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:PutBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
    "s3:PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
}
# What no recording on an emulator shows.
IMPLIED = {
    "autoscaling:DescribeScalingActivities": "reconcile, where a group is not full",
    "autoscaling:SetInstanceProtection": "a destroy drains a group whose nodes somebody protected",
    "autoscaling:TerminateInstanceInAutoScalingGroup": "the daemon ends a node by name",
    "ec2:CreatePlacementGroup": "cluster_placement_group",
    "ec2:DeleteNetworkInterface": "what a removed function leaves in its security group",
    "ec2:DeletePlacementGroup": "cluster_placement_group",
    "ec2:DescribePlacementGroups": "cluster_placement_group",
    "ec2:DetachNetworkInterface": "what a removed function leaves in its security group",
    "ec2:ModifyInstanceMetadataOptions": "another metadata_hop_limit of a server",
    "ecr:GetRepositoryPolicy": "a function's image",
    "ecr:SetRepositoryPolicy": "a function's image",
    "iam:CreateServiceLinkedRole": "an account's first spot node or Auto Scaling group",
    "iam:PassRole": "nodes and functions get their role",
}

# What a call acts on, where the module makes it; the first pattern that fits.
ACTS_ON = {
    "autoscaling:*": "aws_autoscaling_group",
    "iam:*InstanceProfile": "aws_iam_instance_profile",
    "iam:*Role*": "aws_iam_role",
    "s3:*": "aws_s3_bucket",
    "logs:*": "aws_cloudwatch_log_group",
    "lambda:*": "aws_lambda_function",
    "ec2:RunInstances": "aws_instance",
    "ec2:TerminateInstances": "aws_instance",
    "ec2:ModifyInstance*": "aws_instance",
    "ec2:*LaunchTemplate": "aws_launch_template",
    "ec2:*SecurityGroup*": "aws_security_group",
}
FLEETS = ("resnet50", "mobilenet-serverless")  # of which one ARN or the other tells


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def recorded_actions() -> list[str]:
    calls = json.loads(RECORDED.read_text())["calls"]
    return sorted({ACTION_OF.get(call, call) for call in calls})


def test_the_module_has_no_kind_of_resource_that_was_not_recorded() -> None:
    recorded = json.loads(RECORDED.read_text())["kinds"]

    assert kinds_of_resources() == recorded, "python -m tests.docs.record_aws_calls writes it anew"


@pytest.mark.parametrize("action", [*recorded_actions(), *IMPLIED])
def test_every_action_of_a_fleets_life_is_allowed(action: str) -> None:
    allowed = [pattern for s in STATEMENTS for pattern in listed(s["Action"])]

    assert [pattern for pattern in allowed if fnmatchcase(action, pattern)]


def arns_of(action: str) -> list[str]:
    """Return what the module made that a call acts on; nothing: it acts on something else."""
    made = json.loads(RECORDED.read_text())["made"]
    kind = next((kind for pattern, kind in ACTS_ON.items() if fnmatchcase(action, pattern)), "")
    return list(made.get(kind, []))


def is_allowed(action: str, arn: str, *, fleet: str) -> bool:
    """Tell whether a statement has both, whatever its condition says."""
    return any(
        any(fnmatchcase(action, pattern) for pattern in listed(s["Action"]))
        and any(fnmatchcase(arn, p.replace("FLEET", fleet)) for p in listed(s["Resource"]))
        for s in STATEMENTS
    )


NOT_RECORDED = ("iam:PassRole", "autoscaling:TerminateInstanceInAutoScalingGroup")
ON_WHAT_IS_MADE = [(a, arn) for a in (*recorded_actions(), *NOT_RECORDED) for arn in arns_of(a)]


@pytest.mark.parametrize(("action", "arn"), ON_WHAT_IS_MADE)
def test_every_action_is_allowed_on_what_the_module_makes(action: str, arn: str) -> None:
    assert [fleet for fleet in FLEETS if is_allowed(action, arn, fleet=fleet)]


def test_most_actions_are_held_against_what_they_act_on() -> None:
    held = {action for action, _ in ON_WHAT_IS_MADE}

    assert len(held) > 60
    assert {arn.split(":")[2] for _, arn in ON_WHAT_IS_MADE} == {
        "autoscaling", "ec2", "iam", "lambda", "logs", "s3"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("action", "arn"),
    [
        ("iam:PutRolePolicy", "arn:aws:iam::123456789012:role/prod-deploy"),
        ("iam:PassRole", "arn:aws:iam::123456789012:role/prod-deploy"),
        ("iam:DeleteInstanceProfile", "arn:aws:iam::123456789012:instance-profile/prod-web"),
        ("lambda:UpdateFunctionCode", "arn:aws:lambda:us-east-1:123456789012:function:prod-web"),
    ],
)
def test_what_others_call_by_a_name_that_begins_like_the_fleets_is_out_of_reach(
    action: str, arn: str
) -> None:
    assert not is_allowed(action, arn, fleet="prod")


def test_groups_are_told_by_their_tag_and_not_by_their_name_alone() -> None:
    groups = [s for s in STATEMENTS if any("autoScalingGroup:" in r for r in listed(s["Resource"]))]

    assert groups
    for statement in groups:
        assert statement["Condition"] == {
            "StringEquals": {"autoscaling:ResourceTag/Fleet": "FLEET"}
        }


def test_what_holds_for_every_resource_only_reads() -> None:
    everywhere = [s for s in STATEMENTS if "*" in listed(s["Resource"])]

    assert everywhere
    for action in (action for s in everywhere for action in listed(s["Action"])):
        assert re.match("[a-z0-9]+:(Describe|Get|List)", action)


def test_a_role_is_handed_to_nodes_and_functions_alone() -> None:
    [handing] = [s for s in STATEMENTS if "iam:PassRole" in listed(s["Action"])]

    services = handing["Condition"]["StringEquals"]["iam:PassedToService"]
    assert set(services) == {"ec2.amazonaws.com", "lambda.amazonaws.com"}
    assert handing["Resource"] == "arn:aws:iam::*:role/spotwright/FLEET-*"


def test_aws_takes_it_as_a_managed_policy() -> None:
    names = [s["Sid"] for s in STATEMENTS]

    filled_in = POLICY.read_text().replace("FLEET", FLEETS[0])
    assert len(re.sub(r"\s", "", filled_in)) <= _MOST_CHARACTERS
    assert len(set(names)) == len(names)
    assert all(s["Effect"] == "Allow" for s in STATEMENTS)
