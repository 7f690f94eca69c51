"""Hostile values in a generated file: what terraform/tests cannot say, because it holds no JSON."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.moto_server import MotoServer, moto
from tests.terraform_tool import MODULE, require_aws_provider, run_terraform

__all__ = ["moto"]

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


class Module:
    """A copy of the module, planned with whatever is in its file of variables."""

    def __init__(self, folder: Path, server: MotoServer) -> None:
        self.folder, self._environment = folder, server.environment()

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = run_terraform(self.folder, *arguments, environment=self._environment)
        return done.returncode, done.stdout, done.stderr

    def plan(self, fleet: dict[str, Any]) -> tuple[int, str, str]:
        (self.folder / "fleet.auto.tfvars.json").write_text(json.dumps(fleet))
        return self.run("plan", "-lock=false", "-out=plan.bin")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory, moto: MotoServer) -> Module:
    require_aws_provider()
    folder = tmp_path_factory.mktemp("copy") / "module"
    left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*", "tests", "examples", "modules")
    shutil.copytree(MODULE, folder, ignore=left_out)
    copy = Module(folder, moto)
    assert copy.run("init", "-backend=false")[0] == 0
    return copy


def test_everything_wrong_with_a_file_is_said_at_once(module: Module) -> None:
    other = KEY.replace("az4", "az6")
    wrong = {KEY: POOL | {"node_count": -1}, other: POOL | {"zone_id": "use1-az6", "market": "x"}}

    code, _, stderr = module.plan(
        FLEET | {"schema_version": 2, "fleet_name": 'x"; rm -r ${path.root}', "pools": wrong}
    )

    said = " ".join(stderr.replace("│", " ").split())
    assert code == 1
    assert "reads schema_version 1 and the file has 2" in said
    assert "fleet_name must be 1 to 63 lower-case letters" in said
    assert f"needs a whole node_count >= 1; leave out pools with no nodes. Wrong: {KEY}." in said
    assert f"A market is spot or on-demand. Wrong: {other}." in said
    assert f"a replan changes counts and never identity. Wrong: {other}." in said


def test_a_tag_that_aws_would_not_take_is_refused_and_never_taken_for_code(module: Module) -> None:
    tags = {"Team": "${path.root}", "Note": 'a"b', "Fine": "vision/é 7", "%{ if true }": "x"}

    code, _, stderr = module.plan(FLEET | {"tags": tags, "plan_id": 'p"${var.region}'})

    said = " ".join(stderr.replace("│", " ").split())
    assert code == 1
    assert "because IAM takes nothing else. Wrong: Note, Team." in said
    assert "is not . or .. or _index. Wrong: %{ if true }." in said
    assert "plan_id must be 1 to 256 letters" in said


def test_tags_that_aws_takes_are_on_every_node(module: Module) -> None:
    tags = {"Team": "vision/é 7", "Cost.Centre": "a=b+c@d:e"}

    code, _, stderr = module.plan(FLEET | {"tags": tags})
    planned = json.loads(module.run("show", "-json", "plan.bin")[1])["planned_values"]

    assert code == 0, stderr
    resources = {r["address"]: r["values"] for r in planned["root_module"]["resources"]}
    template = resources[f'aws_launch_template.this["{KEY}"]']["tag_specifications"]
    group = resources[f'aws_autoscaling_group.this["{KEY}"]']["tag"]
    ours = {"Fleet": "resnet50", "Pool": KEY, "Role": "worker"}
    assert [specification["tags"] for specification in template] == [tags | ours] * 2
    assert {tag["key"]: tag["value"] for tag in group} == tags | ours | {"Plan": "p-1"}


def test_what_is_left_out_of_a_pool_is_told_with_its_key(module: Module) -> None:
    code, _, stderr = module.plan(FLEET | {"pools": {KEY: POOL | {"role": None, "market": None}}})

    said = " ".join(stderr.replace("│", " ").split())
    assert code == 1
    assert f"Nothing of a pool may be null. Wrong: {KEY}." in said
    assert "Invalid template interpolation" not in said
