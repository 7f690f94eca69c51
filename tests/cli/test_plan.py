"""`spotwright plan`, run as a user runs it."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.command import SPOTWRIGHT, clean_environment, spotwright, spotwright_here

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT_CNN = EXAMPLES / "text-cnn-bsp.yaml"
SERVERLESS = EXAMPLES / "mobilenet-serverless.yaml"
# Minutes to the proof, an instant to the first fleet.
SLOW = EXAMPLES / "wide-resnet-asp.yaml", "--deadline", "33m"
UNSOLVED = EXAMPLES / "wide-resnet-asp.yaml", "--deadline", "15m"  # neither is there in a moment
KEYS = {
    "status", "objective", "job", "strategy", "cost_usd", "low_cost_usd", "high_cost_usd",
    "lower_bound_usd", "lower_bound_s", "gap_fraction", "duration_s", "low_duration_s",
    "high_duration_s", "duration_p95_s", "steps_to_goal", "deadline_probability",
    "overall_deadline_probability", "uninterrupted_probability", "fleet", "changes",
    "bottleneck", "why", "savings", "alternatives", "frontier", "notes", "solve_s", "catalog_time",
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a job with three types in one zone: planned in an instant."""
    text = (EXAMPLES / "resnet50.yaml").read_text(encoding="utf-8")
    for old, new in {
        "gpus: [T4, A10G, L4, L40S]": "types: [g4dn.xlarge, g4dn.12xlarge, g5.xlarge]\n"
        "  zones: [use1-az6]",
        "max_nodes: 32": "max_nodes: 8",
        "deadline: 16h": "deadline: 60h",
    }.items():
        assert old in text
        text = text.replace(old, new)
    job = tmp_path / "job.yaml"
    job.write_text(text, encoding="utf-8")
    return job


def _json(*arguments: str | Path) -> Any:
    done = spotwright_here("plan", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def _refusal(*arguments: str | Path) -> str:
    """Return the complaint of a command that ends with exit 2 and no result."""
    done = spotwright_here("plan", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    return done.stderr.removeprefix("error: ").rstrip("\n")


def _expression(fleet: list[dict[str, Any]]) -> str:
    terms = [
        f"{'ps=' if g['role'] == 'ps' else ''}{g['instance_type']}*{g['node_count']}"
        + (f"@{g['zone']}/{g['market']}" if g["zone"] else "")
        for g in fleet
    ]
    return " + ".join(terms)


@pytest.mark.parametrize("objective", ["cost", "time", "pareto"])
@pytest.mark.parametrize("strategy", ["allreduce", "bsp-ps", "serverless"])
def test_a_plan_has_every_key_and_keeps_what_predict_says_of_its_fleet(
    strategy: str, objective: str, small: Path
) -> None:
    job = {"allreduce": small, "bsp-ps": TEXT_CNN, "serverless": SERVERLESS}[strategy]

    told = _json(job, "--objective", objective)

    schema = json.loads(spotwright_here("schema", "plan").stdout)
    jsonschema.validate(told, schema)
    assert set(told) == KEYS
    assert (told["status"], told["strategy"]) == ("optimal", strategy)
    assert told["lower_bound_usd"] <= told["cost_usd"]
    assert 0 <= told["gap_fraction"] <= 0.001 + 1e-9
    assert (told["lower_bound_s"] is not None) == (objective == "time")
    assert bool(told["frontier"]) == (objective == "pareto")
    done = spotwright_here("predict", job, "--fleet", _expression(told["fleet"]), "--json")
    predicted = json.loads(done.stdout)
    for figure in ("cost_usd", "duration_s", "low_duration_s", "deadline_probability"):
        assert told[figure] == pytest.approx(predicted[figure])


def test_the_frontier_grows_cheaper_as_time_goes_by(small: Path) -> None:
    frontier = _json(small, "--objective", "pareto")["frontier"]

    assert len(frontier) > 2
    seconds, dollars = ([p[key] for p in frontier] for key in ("duration_s", "cost_usd"))
    assert seconds == sorted(seconds)
    assert dollars == sorted(dollars, reverse=True)
    assert all(p["lower_bound_usd"] <= p["cost_usd"] for p in frontier)


def test_flags_override_the_goal_of_the_file(small: Path) -> None:
    usual = _json(small)
    soon = _json(small, "--deadline", "20h", "--confidence", "99%")
    within = _json(small, "--objective", "time", "--budget", "$69.50")

    assert usual["duration_s"] > 20 * 3600 >= soon["duration_s"]
    assert soon["deadline_probability"] >= 0.99
    assert soon["cost_usd"] > usual["cost_usd"]
    assert within["cost_usd"] <= 69.5
    assert within["duration_s"] < soon["duration_s"]


def test_a_lower_loss_takes_more_steps() -> None:
    usual, lower = _json(TEXT_CNN), _json(TEXT_CNN, "--target-loss", "0.45")

    # Cynthia's law: the steps to a loss go with 1 / (loss - k1)
    ratio = (0.5 - 0.31) / (0.45 - 0.31)
    assert lower["steps_to_goal"] / usual["steps_to_goal"] == pytest.approx(ratio)


@pytest.mark.parametrize(("switching", "kept"), [("0", False), ("5m", False), ("20d", True)])
def test_what_runs_stays_where_a_change_does_not_pay(
    small: Path, switching: str, kept: bool
) -> None:
    runs = "--existing", "g5.xlarge*4@use1-az6/spot"

    told = _json(small, "--deadline", "3d", *runs, "--switching", switching)

    types = {group["instance_type"] for group in told["fleet"]}
    assert (types == {"g5.xlarge"}) is kept


def test_new_nodes_are_paid_for_while_they_start(small: Path) -> None:
    runs = "--existing", "g5.xlarge@use1-az6/spot"

    free, usual = _json(small, *runs, "--switching", "0"), _json(small, *runs)

    rent = sum(g["price_usd_per_hour"] * g["node_count"] for g in usual["fleet"])
    assert usual["fleet"] == free["fleet"]
    assert usual["cost_usd"] - free["cost_usd"] == pytest.approx(rent * 300 / 3600)


def test_a_replan_tells_what_to_keep_to_add_and_to_stop(small: Path) -> None:
    runs = {"g5.xlarge": 4, "g4dn.xlarge": 1}
    existing = " + ".join(f"{name}*{n}@use1-az6/spot" for name, n in runs.items())

    told = _json(small, "--existing", existing)
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
    existing = _expression(_json(small)["fleet"])

    told = _json(small, "--existing", existing)
    shown = spotwright_here("plan", small, "--existing", existing).stdout

    assert [c["running_count"] for c in told["changes"]] == [
        c["planned_count"] for c in told["changes"]
    ]
    assert "change: none, what runs is what is planned" in shown.splitlines()


def test_servers_that_run_are_compared_too() -> None:
    told = _json(TEXT_CNN, "--existing", "g4dn.xlarge@use2-az2/spot + ps=c5n.4xlarge@use2-az2")

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
    assert _json(small)["changes"] == []
    assert "change: " not in spotwright_here("plan", small).stdout


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--deadline", "soon"], "--deadline: cannot read 'soon' as a positive duration such as"),
        (["--deadline", "-4h"], "--deadline: cannot read '-4h' as a positive duration such as"),
        (["--budget", "20 EUR"], "--budget: cannot read '20 EUR' as an amount such as $20"),
        (["--budget", "0"], "--budget: cannot read '0' as an amount such as $20"),
        (["--confidence", "often"], "--confidence: cannot read 'often' as a fraction such as"),
        (["--confidence", "1"], "--confidence: cannot read '1' as a fraction above 0 and below 1"),
        (["--confidence", "95"], "--confidence: cannot read '95' as a fraction between 0 and 1"),
        (["--gap", "0"], "--gap: cannot read '0' as a fraction above 0 and below 1"),
        (["--gap", "1"], "--gap: cannot read '1' as a fraction above 0 and below 1"),
        (["--time-limit", "0"], "--time-limit: cannot read '0' as a positive duration"),
        (["--target-loss", "0"], "--target-loss: must be a positive number, got 0.0"),
        (["--target-loss", "nan"], "--target-loss: must be a positive number, got nan"),
        (["--target-loss", "0.5"], "--target-loss: resnet50 has no law that says when a loss is"),
        (["--switching", "5m"], "--switching goes with --existing FLEET"),
        (["--existing", "g5.xlage"], "--existing: column 1: unknown instance type 'g5.xlage'"),
        (["--existing", "P100"], "--existing: P100 is no instance type that is rented"),
        (["--existing", "g5.xlarge", "--switching", "now"], "--switching: cannot read 'now' as"),
        (["--model", "other"], "job.yaml: it has no workload 'other'"),
        (["--catalog", "absent.json"], "catalog absent.json: "),
    ],
)
def test_each_flag_that_cannot_be_used_is_exit_2_and_named(
    small: Path, flags: list[str], complaint: str
) -> None:
    assert complaint in _refusal(small, *flags)


@pytest.mark.parametrize("flags", [["--objective", "joy"], ["--target-loss", "low"]])
def test_bad_usage_is_exit_2(small: Path, flags: list[str]) -> None:
    done = spotwright("plan", small, *flags)

    assert (done.returncode, done.stdout) == (2, "")
    assert flags[0] in done.stderr


def test_a_job_that_is_not_there_is_exit_2(tmp_path: Path) -> None:
    assert _refusal(tmp_path / "missing.yaml") == f"{tmp_path / 'missing.yaml'}: no such file"


def test_a_loss_that_is_never_reached_is_exit_2() -> None:
    assert "never goes below 0.31" in _refusal(TEXT_CNN, "--target-loss", "0.3")


def test_where_no_fleet_will_do_both_streams_say_why_and_it_is_exit_3() -> None:
    done = spotwright_here("plan", SERVERLESS, "--deadline", "1m", "--json")

    told = json.loads(done.stdout)
    jsonschema.validate(told, json.loads(spotwright_here("schema", "plan").stdout))
    assert done.returncode == 3
    assert (told["status"], told["objective"]) == ("infeasible", "cost")
    assert done.stderr.startswith("error: no fleet meets the goal: ")
    (change,) = told["infeasible"]["changes"]
    assert change["text"] in done.stderr
    assert (change["limit"], change["now"]) == ("goal.deadline", 60)
    assert told["infeasible"]["limits"]
    enough = _json(SERVERLESS, "--deadline", str(change["needed"]))
    assert enough["duration_s"] <= change["needed"] * (1 + 1e-9)


def test_where_no_fleet_will_do_a_person_gets_no_table() -> None:
    done = spotwright_here("plan", SERVERLESS, "--deadline", "1m")

    assert (done.returncode, done.stdout) == (3, "")
    assert "change goal.deadline from 60 s to " in done.stderr


def test_the_tables_show_the_plan_and_notes_go_to_stderr(small: Path) -> None:
    told = _json(small)

    done = spotwright_here("plan", small)

    assert done.returncode == 0
    assert done.stdout.startswith("resnet50: optimal, proved: no fleet that meets the goal costs ")
    assert f"${told['cost_usd']:.2f}" in done.stdout
    for reason in told["why"]:
        assert f"why: {reason}" in done.stdout.splitlines()
    assert done.stderr.startswith("prices of ")


def test_two_runs_print_the_same_but_for_the_time_they_took() -> None:
    def lines(seed: str) -> list[str]:
        run = spotwright("plan", TEXT_CNN, "--json", environment={"PYTHONHASHSEED": seed})
        return [line for line in run.stdout.splitlines() if '"solve_s"' not in line]

    assert len(lines("1")) > 50
    assert lines("1") == lines("2")


def test_a_time_limit_ends_the_search_with_the_best_so_far() -> None:
    done = spotwright_here("plan", *SLOW, "--gap", "1e-6", "--time-limit", "1s", "--json")

    told = json.loads(done.stdout)
    assert (done.returncode, told["status"]) == (0, "feasible")
    assert 1e-6 < told["gap_fraction"] <= 1
    assert done.stderr.startswith("stopped at gap ")
    assert f" % after {told['solve_s']:.3g} s" in done.stderr


def test_a_search_that_ends_without_a_fleet_or_a_proof_is_exit_1() -> None:
    done = spotwright_here("plan", *UNSOLVED, "--time-limit", "1ms", "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: the search was ended before it found a fleet")


@contextmanager
def _on_a_terminal(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a command whose stderr is a terminal, and give what can be read from it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SPOTWRIGHT, "plan", *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=clean_environment(),
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def _read_until(terminal: int, text: bytes) -> bytes:
    shown = b""
    while text not in shown:
        shown += os.read(terminal, 65536)
    return shown


def _rest(terminal: int) -> bytes:
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    return shown


def test_an_interrupt_ends_the_search_with_the_best_so_far() -> None:
    options = "--json", "--gap", "1e-6", "--time-limit", "10 min"
    with _on_a_terminal(*SLOW, *options) as (process, terminal):
        shown = _read_until(terminal, b"searching: best $")
        process.send_signal(signal.SIGINT)
        result, _ = process.communicate(timeout=60)
        shown += _rest(terminal)

    told = json.loads(result)
    assert (process.returncode, told["status"]) == (0, "feasible")
    assert told["fleet"]
    *progress, blank, last = shown.decode().replace("\r\n", "\n").split("\r")
    assert progress[-1].startswith("searching: best $")
    assert blank.strip() == ""
    assert last.startswith("stopped at gap ")


@pytest.mark.parametrize("example", ["text-cnn-bsp.yaml", "mobilenet-serverless.yaml"])
def test_a_report_is_written_beside_the_plan(example: str, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"

    done = spotwright_here("plan", EXAMPLES / example, "--report", page)

    assert done.returncode == 0
    assert f"report written to {page}" in done.stderr
    html = page.read_text(encoding="utf-8")
    assert "What other planners would rent" in html
    assert ("lambdaDNN" if "serverless" in example else "Cynthia") in html
    assert "The frontier as a table" in html


def test_a_planner_that_misses_the_goal_is_in_the_report_too(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"

    spotwright_here("plan", TEXT_CNN, "--report", page)

    assert "finds no fleet that meets the goal" in page.read_text(encoding="utf-8")


def test_a_report_never_replaces_the_job(small: Path) -> None:
    before = small.read_text()

    assert "would overwrite what is read" in _refusal(small, "--report", small)
    assert small.read_text() == before


def test_a_report_that_cannot_be_written_is_refused_before_the_search(small: Path) -> None:
    page = small.parent / "absent" / "plan.html"

    done = spotwright_here("plan", small, "--report", page, "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: --report: {page} cannot be written")
