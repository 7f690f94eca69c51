"""`spotwright plan --existing FLEET`: what stays, what changes."""

from pathlib import Path

import pytest

from tests.cli.command import spotwright_here
from tests.cli.small_job import TEXT_CNN, expression, small_job, told_plan


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return small_job(tmp_path)


@pytest.mark.parametrize(("switching", "kept"), [("0", False), ("5m", False), ("20d", True)])
def test_what_runs_stays_where_a_change_does_not_pay(
    small: Path, switching: str, kept: bool
) -> None:
    runs = "--existing", "g5.xlarge*4@use1-az6/spot"

    told = told_plan(small, "--deadline", "3d", *runs, "--switching", switching)

    types = {group["instance_type"] for group in told["fleet"]}
    assert (types == {"g5.xlarge"}) is kept


def test_new_nodes_are_paid_for_while_they_start(small: Path) -> None:
    runs = "--existing", "g5.xlarge@use1-az6/spot"

    free, usual = told_plan(small, *runs, "--switching", "0"), told_plan(small, *runs)

    rent = sum(g["price_usd_per_hour"] * g["node_count"] for g in usual["fleet"])
    assert usual["fleet"] == free["fleet"]
    assert usual["cost_usd"] - free["cost_usd"] == pytest.approx(rent * 300 / 3600)


def test_a_replan_tells_what_to_keep_to_add_and_to_stop(small: Path) -> None:
    runs = {"g5.xlarge": 4, "g4dn.xlarge": 1}
    existing = " + ".join(f"{name}*{n}@use1-az6/spot" for name, n in runs.items())

    told = told_plan(small, "--existing", existing)
    shown = spotwright_here("plan", small, "--existing", existing).stdout

    planned = {group["instance_type"]: group["node_count"] for group in told["fleet"]}
    changes = {change["instance_type"]: change for change in told["changes"]}
    assert {*changes} == {*runs, *planned}
    for name, change in changes.items():
        assert (change["role"], change["zone"], change["market"]) == ("worker", "use1-az6", "spot")
        assert change["running_count"] == runs.get(name, 0)
        assert change["planned_count"] == planned.get(name, 0)
    assert changes["g5.xlarge"]["planned_count"] == 0
    assert "change: stop 4 of g5.xlarge@use1-az6/spot" in shown.splitlines()
    more = planned["g4dn.xlarge"] - 1
    assert f"change: keep 1 and add {more} of g4dn.xlarge@use1-az6/spot" in shown.splitlines()


def test_a_replan_that_changes_nothing_says_so(small: Path) -> None:
    existing = expression(told_plan(small)["fleet"])

    told = told_plan(small, "--existing", existing)
    shown = spotwright_here("plan", small, "--existing", existing).stdout

    assert [c["running_count"] for c in told["changes"]] == [
        c["planned_count"] for c in told["changes"]
    ]
    assert "change: none, what runs is what is planned" in shown.splitlines()


def test_servers_that_run_are_compared_too() -> None:
    told = told_plan(TEXT_CNN, "--existing", "g4dn.xlarge@use2-az2/spot + ps=c5n.4xlarge@use2-az2")

    servers = {c["instance_type"]: c for c in told["changes"] if c["role"] == "ps"}
    assert servers["c5n.4xlarge"]["running_count"] == 1
    planned = {g["instance_type"]: g["node_count"] for g in told["fleet"] if g["role"] == "ps"}
    assert {n: c["planned_count"] for n, c in servers.items() if c["planned_count"]} == planned


def test_servers_that_run_and_stand_in_the_way_are_named() -> None:
    existing = "g4dn.xlarge@use2-az2/spot + ps=c5n.2xlarge@use2-az2"

    done = spotwright_here("plan", TEXT_CNN, "--deadline", "87m", "--existing", existing)

    assert (done.returncode, done.stdout) == (3, "")
    assert "the parameter servers that run are kept, and no workers suit them" in done.stderr


def test_without_a_fleet_that_runs_no_change_is_told(small: Path) -> None:
    assert told_plan(small)["changes"] == []
    assert "change: " not in spotwright_here("plan", small).stdout
