"""The command, run against an emulated AWS, and what it rents there."""

import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.command import SPOTWRIGHT
from tests.cli.small_job import small_job
from tests.moto_server import MotoServer
from tests.terraform_tool import require_aws_provider

FLEET = "resnet50"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job that is planned in an instant, where there is a Terraform to rent by."""
    require_aws_provider()
    return small_job(tmp_path)


def spotwright(
    *arguments: str | Path, environment: Mapping[str, str], answer: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SPOTWRIGHT, *arguments],
        env=environment, input=answer, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def rented(moto: MotoServer) -> Counter[tuple[str, str, str]]:
    """Count what runs, by role, type and zone name."""
    found: Counter[tuple[str, str, str]] = Counter()
    for instance in moto.instances(FLEET):
        role = next(tag["Value"] for tag in instance["Tags"] if tag["Key"] == "Role")
        zone = instance["Placement"]["AvailabilityZone"]
        found[role, instance["InstanceType"], zone] += 1
    return found
