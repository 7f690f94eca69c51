"""The module where something is wrong: edited files, no account, an AWS that dies."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.terraform.environment import terraform_environment
from tests.moto_server import MotoServer, moto_server
from tests.terraform.fleets import Root, fleet, pool, wanted_counts
from tests.terraform_tool import require_aws_provider

pytestmark = pytest.mark.timeout(300)
WORKERS = pool("g5.xlarge", "use1-az4", 3)
(KEY,) = WORKERS


@pytest.fixture(scope="module")
def moto() -> Iterator[MotoServer]:
    with moto_server() as server:
        yield server


@pytest.fixture(scope="module")
def root(moto: MotoServer, tmp_path_factory: pytest.TempPathFactory) -> Root:
    require_aws_provider()
    return Root(tmp_path_factory.mktemp("hostile"), moto)


def refusal(root: Root, variables: dict[str, Any], **changes: str) -> str:
    root.write(variables)
    code, said = root.run("plan", "-input=false", **changes)
    assert code == 1, said
    return " ".join(said.replace("│", " ").split())


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        (fleet(WORKERS, schema_version=2), "schema_version"),
        (fleet({KEY: WORKERS[KEY] | {"node_count": -1}}), KEY),
        (fleet(WORKERS, name='x"; rm -rf /'), "fleet_name"),
        (fleet(WORKERS, region="eu-west-1"), KEY),
    ],
    ids=["newer schema", "count of -1", "quotes in the name", "zones of another region"],
)
def test_a_file_edited_by_hand_is_refused_before_it_costs_money(
    root: Root, variables: dict[str, Any], complaint: str
) -> None:
    assert complaint in refusal(root, variables)


def test_without_credentials_nothing_is_planned(root: Root) -> None:
    said = refusal(root, fleet(WORKERS), AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")

    assert "No valid credential sources found" in said


def test_an_aws_that_dies_in_the_middle_is_recovered_from_and_leaves_nothing(
    root: Root, moto: MotoServer
) -> None:
    variables = fleet(WORKERS, pool("g4dn.xlarge", "use1-az6", 4))
    root.write(variables)

    said = applied_until(root, "aws_launch_template", then=moto.kill)
    assert "Apply complete!" not in said
    assert list((root.folder).glob("*.tfstate"))  # what was made is known

    moto.start()
    root.must("apply", "-auto-approve", "-input=false")
    assert root.counts() == wanted_counts(variables)
    assert root.is_settled()
    groups = moto.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    templates = moto.client("ec2").describe_launch_templates()["LaunchTemplates"]
    assert (len(groups), len(templates)) == (2, 2)  # nothing twice

    root.must("destroy", "-auto-approve", "-input=false")
    assert root.counts() == {}
    state = json.loads((root.folder / "terraform.tfstate").read_text())
    assert state["resources"] == []


def applied_until(root: Root, word: str, *, then: Any) -> str:
    """Apply, and do something once a line says that a resource of that kind is complete."""
    environment = terraform_environment(
        root.environment, config_file=Path(root.folder, "terraform.rc")
    )
    lines = []
    with subprocess.Popen(
        ["terraform", "apply", "-auto-approve", "-input=false", "-no-color"],
        cwd=root.folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if word in line and "Creation complete" in line and then is not None:
                then()
                then = None
    assert process.returncode == 1, "".join(lines)
    assert then is None, "".join(lines)
    return "".join(lines)
