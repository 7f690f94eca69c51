"""The module where something is wrong: edited files, no account, an AWS out of reach."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.terraform.environment import terraform_environment
from tests.cut_line import line_to
from tests.moto_server import MotoServer, moto
from tests.terraform.fleets import Root, fleet, left_behind, pool, wanted_counts
from tests.terraform_tool import require_aws_provider

pytestmark = pytest.mark.timeout(300)
WORKERS = pool("g5.xlarge", "use1-az4", 3)
(KEY,) = WORKERS


__all__ = ["moto"]  # a fixture, used by its name


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


def test_an_aws_out_of_reach_in_the_middle_is_recovered_from_and_leaves_nothing(
    root: Root, moto: MotoServer
) -> None:
    variables = fleet(WORKERS, pool("g4dn.xlarge", "use1-az6", 4))
    root.write(variables)
    before = left_behind(moto)

    with line_to(moto.port) as line:
        said = applied_until(root, "aws_launch_template", url=line.url, then=line.cut)
    assert "Apply complete!" not in said
    half_way = left_behind(moto)  # the account is still there, and so is what was made in it
    assert half_way["templates"] >= 1
    assert half_way["instances"] < sum(wanted_counts(variables).values())

    root.must("apply", "-auto-approve", "-input=false")
    assert root.counts() == wanted_counts(variables)
    assert root.is_settled()
    whole = left_behind(moto)
    assert (whole["groups"], whole["templates"]) == (2, 2)  # nothing twice
    assert (whole["security groups"], whole["roles"], whole["profiles"]) == (1, 1, 1)

    root.must("destroy", "-auto-approve", "-input=false")
    assert left_behind(moto) == before == dict.fromkeys(before, 0)


def applied_until(root: Root, kind: str, *, url: str, then: Callable[[], None]) -> str:
    """Apply at a URL, and do something once a resource of that kind is complete."""
    environment = terraform_environment(
        root.environment | {"AWS_ENDPOINT_URL": url, "AWS_MAX_ATTEMPTS": "1"},
        config_file=Path(root.folder, "terraform.rc"),
    )
    lines: list[str] = []
    is_done = False
    with subprocess.Popen(
        ["terraform", "apply", "-auto-approve", "-input=false", "-no-color"],
        cwd=root.folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if kind in line and "Creation complete" in line and not is_done:
                then()
                is_done = True
    assert (process.returncode, is_done) == (1, True), "".join(lines)
    return "".join(lines)
