"""The module's own tests, run by the real Terraform with a provider that only pretends."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.terraform_tool import MODULE, require_aws_provider, run_terraform


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_aws_provider()
    folder = tmp_path_factory.mktemp("copy") / "terraform"
    shutil.copytree(MODULE, folder, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
    return folder


def initialised(folder: Path) -> Path:
    done = run_terraform(folder, "init", "-backend=false", environment=os.environ)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_file_is_formatted(module: Path) -> None:
    done = run_terraform(module, "fmt", "-check", "-recursive", environment=os.environ)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.timeout(400)
def test_every_run_of_the_modules_own_tests_passes(module: Path) -> None:
    files = sorted((module / "tests").glob("*.tftest.hcl"))
    runs = [name for file in files for name in re.findall(r'(?m)^run "(\w+)"', file.read_text())]

    done = run_terraform(initialised(module), "test", environment=os.environ, timeout_s=390)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Success! {len(runs)} passed, 0 failed." in done.stdout
    assert len(set(runs)) == len(runs) > 40


EXAMPLE_TEST = """
mock_provider "aws" {
  source = "../../tests/aws"
}

run "the_example" {
  command = plan
  override_data {
    target = module.fleet.data.aws_ec2_instance_type_offerings.this
    values = OFFERED
  }
  override_data {
    target = module.fleet.data.aws_subnet.named
    values = { id = "subnet-own", vpc_id = "vpc-own", availability_zone_id = "use1-az6" }
  }
}
"""


@pytest.mark.parametrize("name", ["minimal", "complete"])
def test_an_example_is_planned_with_the_variables_beside_it(module: Path, name: str) -> None:
    folder = module / "examples" / name
    variables = (folder / "fleet.tfvars.json.example").read_text()
    pools = json.loads(variables)["pools"].values()
    offered = {
        "instance_types": [pool["instance_type"] for pool in pools],
        "locations": [pool["zone_id"] for pool in pools],
    }
    (folder / "fleet.auto.tfvars.json").write_text(variables)
    (folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    (folder / "example.tftest.hcl").write_text(EXAMPLE_TEST.replace("OFFERED", json.dumps(offered)))

    done = run_terraform(initialised(folder), "test", environment=os.environ)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 0 failed." in done.stdout
