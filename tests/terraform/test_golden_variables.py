"""The variables of every example, byte for byte; golden/README.md says how to renew them."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from spotwright.adapters.catalog.snapshot_file import bundled_path
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.cli.asking import planner_to_ask
from spotwright.cli.sources import read_document
from spotwright.domain.hardware import Cloud
from spotwright.domain.questions import PlannedFleet, PlanQuestion
from tests.outside_tools import require_tool
from tests.terraform_tool import run_terraform

EXAMPLES = Path(__file__).parents[2] / "examples"
GOLDEN = Path(__file__).parent / "golden"
JOBS = [*sorted(EXAMPLES.glob("*.yaml")), *sorted(EXAMPLES.glob("papers/*.yaml"))]
QUESTION = PlanQuestion(time_limit_s=300.0)  # a search that is ended early is not repeatable
RENEW = "SPOTWRIGHT_UPDATE_GOLDEN" in os.environ


@cache
def rendered(job: Path) -> str:
    """Plan an example and return its variables under a name that no wording changes."""
    with planner_to_ask(daemon=None, tls_dir=None, catalog_file=bundled_path(Cloud.AWS)) as planner:
        planned = planner.create_plan(read_document(job), QUESTION)
        assert isinstance(planned, PlannedFleet)
        return planner.render_tfvars(planned.plan_id).replace(planned.plan_id, "p-golden")


@pytest.mark.parametrize("job", JOBS, ids=[job.stem for job in JOBS])
def test_an_example_has_the_variables_of_its_golden_file(job: Path) -> None:
    file = GOLDEN / f"{job.stem}.tfvars.json"
    if RENEW:
        file.write_text(rendered(job), encoding="utf-8")

    assert rendered(job) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("job", JOBS, ids=[job.stem for job in JOBS])
def test_golden_variables_are_sorted_and_read_back(job: Path) -> None:
    file = GOLDEN / f"{job.stem}.tfvars.json"
    text = file.read_text(encoding="utf-8")

    assert json.dumps(json.loads(text), sort_keys=True, indent=2) + "\n" == text
    assert read_wanted_fleet(file).pools


def test_golden_files_are_those_of_the_examples_and_terraform_would_not_reformat_them(
    tmp_path: Path,
) -> None:
    require_tool("terraform")
    folder = shutil.copytree(GOLDEN, tmp_path / "golden")

    judged = run_terraform(folder, "fmt", "-check", "-recursive", environment=os.environ)

    assert (judged.returncode, judged.stdout, judged.stderr) == (0, "", "")
    names = {file.name for file in folder.glob("*.json")}
    assert names == {f"{job.stem}.tfvars.json" for job in JOBS}
