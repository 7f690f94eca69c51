import json
from pathlib import Path

import pytest

from tests.cli.command import spotwright_here
from tests.cli.small_job import small_job, told_plan


def test_simulate_tells_every_policy_beside_the_promise(tmp_path: Path) -> None:
    job, page = small_job(tmp_path), tmp_path / "run.html"
    asked = ("--policy", "ours", "--policy", "on-demand", "--runs", "2", "--processes", "1")

    done = spotwright_here("simulate", job, *asked, "--json", "--plot", page)

    assert (done.returncode, done.stderr) == (0, f"timeline written to {page}\n")
    told = json.loads(done.stdout)
    assert list(told["policies"]) == ["ours", "on-demand"]
    assert told["policies"]["on-demand"]["late"] == 0
    assert told["policies"]["on-demand"]["nodes_lost"] == 0
    assert told["promised"]["deadline_probability"] > 0.9
    assert page.read_text().count("<svg") == 3


def test_simulate_starts_with_a_plan_and_draws_hazards(tmp_path: Path) -> None:
    job, plan = small_job(tmp_path), tmp_path / "plan.json"
    plan.write_text(json.dumps(told_plan(job)))

    done = spotwright_here(
        "simulate", job, "--plan", plan, "--traces", "hazard", "--policy", "greedy", "--runs", "3",
        "--processes", "1",
    )  # fmt: skip

    assert done.returncode == 0
    assert "losses drawn from the hazards" in done.stdout
    assert "the plan promised" in done.stdout


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--policy", "lucky"], "'lucky' is not a valid PolicyName; there are ours, on-demand"),
        (["--traces", "nowhere"], "nowhere is neither a CSV file"),
        (["--plot", "run.pdf"], "must be a .png or .html file"),
        (["--plan", "missing.json"], "is not what `spotwright plan --json` prints"),
        (["--ray", "local", "--processes", "2"], "drop one"),
    ],
)
def test_simulate_says_what_is_wrong(tmp_path: Path, flags: list[str], complaint: str) -> None:
    done = spotwright_here("simulate", small_job(tmp_path), *flags)

    assert done.returncode == 2
    assert complaint in done.stderr
