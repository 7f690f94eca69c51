"""The module for plans with functions: its own tests, and its example rented from moto."""

import os
import re
import shutil
from pathlib import Path

import pytest

from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from tests.moto_server import MotoServer, moto  # noqa: F401
from tests.terraform.fleets import left_behind
from tests.terraform_tool import MODULE, require_aws_provider, run_terraform

VARIABLES = Path(__file__).parent / "golden" / "mobilenet-serverless.tfvars.json"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training:v1"


@pytest.fixture(scope="module")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_aws_provider()
    folder = tmp_path_factory.mktemp("serverless") / "terraform"
    shutil.copytree(MODULE, folder, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
    return folder


def done(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
    ended = run_terraform(
        folder, *arguments, environment=environment or dict(os.environ), timeout_s=300.0
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.timeout(400)
def test_the_module_passes_its_own_tests(terraform: Path) -> None:
    module = terraform / "modules" / "serverless"
    done(module, "init", "-backend=false")

    text = (module / "tests" / "serverless.tftest.hcl").read_text()
    count = len(re.findall(r'(?m)^run "', text))
    assert f"Success! {count} passed, 0 failed." in done(module, "test")


@pytest.mark.timeout(400)
def test_the_variables_of_the_example_rent_functions_that_reach_their_server_and_leave_nothing(
    terraform: Path,
    moto: MotoServer,  # noqa: F811
) -> None:
    root, wanted = terraform / "examples" / "serverless", read_wanted_fleet(VARIABLES)
    shutil.copy(VARIABLES, root / "fleet.auto.tfvars.json")
    (root / "terraform.tfvars").write_text(f'image_uri = "{IMAGE}"\n')
    done(terraform, "fmt", "-check", "-recursive", "modules", "examples/serverless")
    done(root, "init")
    done(root, "apply", "-auto-approve", environment=moto.environment())

    (server,) = moto.instances(wanted.name)
    told = moto.client("lambda").get_function(FunctionName=wanted.name)
    function = told["Configuration"]
    assert wanted.functions is not None
    assert function["MemorySize"] == wanted.functions.memory_mb
    concurrency = told["Concurrency"]["ReservedConcurrentExecutions"]
    assert concurrency == wanted.functions.function_count
    addresses = function["Environment"]["Variables"]["SPOTWRIGHT_PARAMETER_SERVERS"]
    assert addresses == server["PrivateIpAddress"]
    assert function["VpcConfig"]["SubnetIds"] == [server["SubnetId"]]
    (group,) = server["SecurityGroups"]
    assert function["VpcConfig"]["SecurityGroupIds"] == [group["GroupId"]]
    assert told["Tags"] == {"Fleet": wanted.name, "Plan": wanted.plan_id, "Role": "worker"}
    # Nothing is left to do: 2 would be a change.
    done(root, "plan", "-detailed-exitcode", environment=moto.environment())

    done(root, "destroy", "-auto-approve", environment=moto.environment())
    left = left_behind(moto, wanted.name)
    assert left == dict.fromkeys(left, 0)
