"""The contract of the generated variables, checked by Terraform itself."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.outside_tools import require_tool

MODULE = Path(__file__).parents[2] / "terraform"
POOL = {
    "role": "worker",
    "instance_type": "g5.xlarge",
    "zone_id": "use1-az4",
    "market": "spot",
    "node_count": 6,
    "max_price_usd_per_hour": "0.52",
    "efa_interfaces": 0,
}
KEY = "worker-g5-xlarge-use1-az4-spot"
FLEET: dict[str, Any] = {
    "schema_version": 1,
    "fleet_name": "resnet50",
    "plan_id": "p-1",
    "region": "us-east-1",
    "cost_usd_low": 31.0,
    "cost_usd_high": 38.5,
    "pools": {KEY: POOL},
}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_tool("terraform")
    folder = tmp_path_factory.mktemp("module")
    for file in MODULE.glob("*.tf"):
        shutil.copy(file, folder)
    terraform(folder, "init", "-backend=false", "-input=false", check=True)
    return folder


def terraform(
    folder: Path, *arguments: str, check: bool = False
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    return subprocess.run(
        ["terraform", *arguments, "-no-color"],
        cwd=folder, env=environment, check=check, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def plan(module: Path, fleet: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (module / "fleet.auto.tfvars.json").write_text(json.dumps(fleet))
    return terraform(module, "plan", "-input=false", "-lock=false")


def test_the_module_is_formatted_and_valid(module: Path) -> None:
    assert terraform(module, "fmt", "-check").returncode == 0
    assert terraform(module, "validate").returncode == 0


def test_a_generated_fleet_is_accepted(module: Path) -> None:
    assert plan(module, FLEET).returncode == 0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema_version": 2}, "reads schema_version 1"),
        ({"fleet_name": 'x"; rm'}, "lower-case letters"),
        ({"pools": {KEY: POOL | {"node_count": -1}}}, KEY),
        ({"pools": {KEY: POOL | {"node_count": 1.5}}}, KEY),
        ({"pools": {KEY: POOL | {"market": "spott"}}}, "spot or on-demand"),
        ({"pools": {KEY: POOL | {"role": "boss"}}}, "worker or ps"),
        ({"pools": {"other": POOL}}, "role-type-zone-market"),
    ],
)
def test_a_bad_fleet_fails_before_it_costs_money(
    module: Path, change: dict[str, Any], complaint: str
) -> None:
    refused = plan(module, FLEET | change)

    assert refused.returncode == 1
    assert complaint in " ".join(refused.stderr.replace("│", " ").split())
