"""The variables of every example job, planned by Terraform.

The golden files are what `spotwright plan --tfvars` writes: test_golden_variables.py sees to that.
The emulator does not know the types of the papers' clusters, so those meet a mocked provider, with
an image that their older GPUs need.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.moto_server import MotoServer, moto
from tests.terraform.fleets import Root
from tests.terraform_tool import MODULE, require_aws_provider, run_terraform

__all__ = ["moto"]  # a fixture, used by its name

pytestmark = pytest.mark.timeout(300)
EXAMPLES = MODULE.parent / "examples"
GOLDEN = Path(__file__).parent / "golden"
PAPERS = sorted(path.stem for path in (EXAMPLES / "papers").glob("*.yaml"))
OTHERS = sorted(
    path.stem for path in EXAMPLES.glob("*.yaml") if "serverless" not in path.stem
)  # test_serverless.py rents that one


def variables_of(example: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{example}.tfvars.json").read_text())
    return found


@pytest.fixture(scope="module")
def root(moto: MotoServer, tmp_path_factory: pytest.TempPathFactory) -> Root:
    require_aws_provider()
    return Root(tmp_path_factory.mktemp("examples"), moto)


@pytest.mark.parametrize("example", OTHERS)
def test_the_variables_of_an_example_are_planned(root: Root, example: str) -> None:
    variables = variables_of(example)
    root.write(variables)

    root.must("plan", "-input=false", "-out=plan")
    planned = json.loads(root.must("show", "-json", "plan"))["resource_changes"]

    made = [c for c in planned if c["change"]["actions"] == ["create"]]
    groups = {
        c["index"]: c["change"]["after"]["desired_capacity"]
        for c in made
        if c["type"] == "aws_autoscaling_group"
    }
    pools = variables["pools"].items()
    assert groups == {key: p["node_count"] for key, p in pools if p["role"] == "worker"}
    servers = [c for c in made if c["type"] == "aws_instance"]
    assert len(servers) == sum(p["node_count"] for _, p in pools if p["role"] == "ps")


def test_the_variables_of_the_papers_jobs_are_planned(tmp_path: Path) -> None:
    require_aws_provider()
    left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*", "*.tftest.hcl", "examples")
    shutil.copytree(MODULE, tmp_path / "terraform", ignore=left_out)
    text = 'mock_provider "aws" {\n  source = "./tests/aws"\n}\n'
    text += "".join(run_block(name, variables_of(name)) for name in PAPERS)
    (tmp_path / "terraform/tests/papers.tftest.hcl").write_text(text)

    begun = run_terraform(tmp_path / "terraform", "init", environment=os.environ)
    assert begun.returncode == 0, begun.stderr
    done = run_terraform(tmp_path / "terraform", "test", environment=os.environ)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(PAPERS)} passed, 0 failed." in done.stdout


def run_block(name: str, variables: dict[str, Any]) -> str:
    """Return a test that plans a file, in a region that offers what it asks for."""
    pools = variables["pools"].values()
    offered = {
        "instance_types": [pool["instance_type"] for pool in pools],
        "locations": [pool["zone_id"] for pool in pools],
    }
    workers = sum(pool["role"] == "worker" for pool in pools)
    lines = "\n".join(f"    {key} = {json.dumps(value)}" for key, value in variables.items())
    return f"""
run "{name.replace("-", "_")}" {{
  command = plan
  variables {{
    ami_id = "ami-0123456789abcdef0"
{lines}
  }}
  override_data {{
    target = data.aws_ec2_instance_type_offerings.this
    values = {json.dumps(offered)}
  }}
  assert {{
    condition     = length(aws_autoscaling_group.this) == {workers}
    error_message = "There is a group for each pool of workers."
  }}
}}
"""
