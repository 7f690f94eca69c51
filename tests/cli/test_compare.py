"""`spotwright compare`, run as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import spotwright_here

EXAMPLES = Path(__file__).parents[2] / "examples"
RESNET = EXAMPLES / "resnet50.yaml"
CHEAP, DEAR, BEYOND_QUOTA = "g4dn.12xlarge*4/spot", "g6.12xlarge*3", "g4dn.metal*9/spot"
SLOW = "g4dn.12xlarge/spot"  # cheaper still, and 43 hours too late


def _fleets(*fleets: str) -> list[str]:
    return [word for fleet in fleets for word in ("--fleet", fleet)]


def _json(job: Path, *fleets: str) -> Any:
    done = spotwright_here("compare", job, *_fleets(*fleets), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def _refusal(*arguments: str | Path) -> str:
    done = spotwright_here("compare", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_each_fleet_is_told_as_predict_tells_it() -> None:
    told = _json(RESNET, CHEAP, DEAR)

    for fleet, found in zip((CHEAP, DEAR), told["fleets"], strict=True):
        alone = json.loads(spotwright_here("predict", RESNET, "--fleet", fleet, "--json").stdout)
        broken = found.pop("broken_limits")
        assert alone.pop("catalog_time")
        assert found == alone
        assert found["notes"][: len(broken)] == broken


@pytest.mark.parametrize(
    ("fleets", "cheapest"),
    [
        ([CHEAP, DEAR], 0),
        ([DEAR, CHEAP], 1),
        ([SLOW, DEAR], 1),  # cheaper, but late
        ([BEYOND_QUOTA, DEAR], 1),  # cheaper, but more than may be rented
        ([SLOW, BEYOND_QUOTA], None),
        ([CHEAP, CHEAP], 0),
    ],
)
def test_the_cheapest_is_the_cheapest_that_will_do(fleets: list[str], cheapest: int | None) -> None:
    assert _json(RESNET, *fleets)["cheapest"] == cheapest


@pytest.mark.parametrize(("budget", "cheapest"), [("$160", 1), ("$150", None)])
def test_a_fleet_beyond_the_budget_will_not_do(
    tmp_path: Path, budget: str, cheapest: int | None
) -> None:
    job = tmp_path / "job.yaml"
    text = RESNET.read_text(encoding="utf-8")
    job.write_text(text.replace("deadline: 16h", f"deadline: 16h\n  budget: {budget}"))

    told = _json(job, SLOW, DEAR)

    assert told["cheapest"] == cheapest
    exceeded = "the budget of $150.00 is exceeded"
    assert (exceeded in told["fleets"][1]["broken_limits"]) is (cheapest is None)


def test_the_table_has_a_column_for_each_fleet_and_marks_the_cheapest() -> None:
    told = _json(RESNET, DEAR, CHEAP, BEYOND_QUOTA)

    done = spotwright_here("compare", RESNET, *_fleets(DEAR, CHEAP, BEYOND_QUOTA))

    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == "fleet 1: g6.12xlarge*3@use1-az1/on-demand"
    assert " ".join(lines[4].split()) == "figure fleet 1 fleet 2 (cheapest) fleet 3"
    rows = {line[:16].strip(): line[16:].split() for line in lines[5:13]}
    assert rows["cost"] == [f"${f['cost_usd']:.2f}" for f in told["fleets"]]
    assert rows["samples/s"] == [f"{f['samples_per_s']:,.1f}" for f in told["fleets"]]
    assert rows["bottleneck"] == [f["bottleneck"] for f in told["fleets"]]
    assert rows["broken limits"] == ["-", "-", "1"]
    assert any(line.startswith("fleet 3: 864 spot g-vt vCPUs") for line in lines)
    assert "prices of " in done.stderr


def test_the_table_says_so_where_none_will_do() -> None:
    done = spotwright_here("compare", RESNET, *_fleets(SLOW, BEYOND_QUOTA))

    assert done.stdout.splitlines()[-1] == "none of them meets the goal and keeps the limits"
    assert "(cheapest)" not in done.stdout


def test_functions_can_be_compared() -> None:
    told = _json(EXAMPLES / "mobilenet-serverless.yaml", "lambda:2048*8", "lambda:1024*8")

    assert told["cheapest"] in (0, 1)


@pytest.mark.parametrize("fleets", [[], [CHEAP]])
def test_fewer_than_two_fleets_are_refused(fleets: list[str]) -> None:
    told = _refusal(RESNET, *_fleets(*fleets))

    assert told == "error: give --fleet at least twice; for one fleet there is predict\n"


def test_a_typo_points_at_its_column() -> None:
    assert "did you mean 'g5.xlarge'?" in _refusal(RESNET, *_fleets(CHEAP, "g5.xlage"))


def test_a_fleet_that_cannot_train_the_job_is_named() -> None:
    told = _refusal(RESNET, *_fleets(CHEAP, "g5.xlarge + ps=m5.xlarge"))

    assert told.startswith("error: g5.xlarge + ps=m5.xlarge: strategy allreduce has no")


def test_a_job_that_is_not_there_is_exit_2(tmp_path: Path) -> None:
    job = tmp_path / "missing.yaml"

    assert _refusal(job, *_fleets(CHEAP, DEAR)) == f"error: {job}: no such file\n"
