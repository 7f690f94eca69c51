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
    "ec2:CreatePlacementGroup": "cluster_placement_group",
    "ec2:DeleteNetworkInterface": "what a removed function leaves in its security group",
    "ec2:DeletePlacementGroup": "cluster_placement_group",
    "ec2:DescribePlacementGroups": "cluster_placement_group",
    "ec2:DetachNetworkInterface": "what a removed function leaves in its security group",
    "ecr:GetRepositoryPolicy": "a function's image",
    "ecr:SetRepositoryPolicy": "a function's image",
    "iam:CreateServiceLinkedRole": "an account's first spot node or Auto Scaling group",
    "iam:PassRole": "nodes and functions get their role",
}


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


def test_what_holds_for_every_resource_only_reads() -> None:
    everywhere = [s for s in STATEMENTS if "*" in listed(s["Resource"])]

    assert everywhere
    for action in (action for s in everywhere for action in listed(s["Action"])):
        assert re.match("[a-z0-9]+:(Describe|Get|List)", action)


def test_a_role_is_handed_to_nodes_and_functions_alone() -> None:
    [handing] = [s for s in STATEMENTS if "iam:PassRole" in listed(s["Action"])]

    services = handing["Condition"]["StringEquals"]["iam:PassedToService"]
    assert set(services) == {"ec2.amazonaws.com", "lambda.amazonaws.com"}
    assert handing["Resource"] == "arn:aws:iam::*:role/FLEET-*"


def test_aws_takes_it_as_a_managed_policy() -> None:
    names = [s["Sid"] for s in STATEMENTS]

    assert len(re.sub(r"\s", "", POLICY.read_text())) <= _MOST_CHARACTERS
    assert len(set(names)) == len(names)
    assert all(s["Effect"] == "Allow" for s in STATEMENTS)
