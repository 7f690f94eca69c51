"""`spotwright plan`, run as a user runs it."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest

from spotwright.adapters.catalog.snapshot_file import bundled_path
from spotwright.domain.hardware import Cloud
from tests.cli.command import SPOTWRIGHT, clean_environment, spotwright, spotwright_here
from tests.cli.small_job import EXAMPLES, TEXT_CNN, expression, small_job, told_plan
from tests.outside_tools import require_tool

SERVERLESS = EXAMPLES / "mobilenet-serverless.yaml"
# Minutes to the proof, an instant to the first fleet.
SLOW = EXAMPLES / "wide-resnet-asp.yaml", "--deadline", "33m"
UNSOLVED = EXAMPLES / "wide-resnet-asp.yaml", "--deadline", "15m"  # neither is there in a moment
KEYS = {
    "status", "objective", "job", "strategy", "cost_usd", "low_cost_usd", "high_cost_usd",
    "lower_bound_usd", "lower_bound_s", "gap_fraction", "duration_s", "low_duration_s",
    "high_duration_s", "duration_p95_s", "steps_to_goal", "weighted_batch", "deadline_probability",
    "overall_deadline_probability", "uninterrupted_probability", "fleet", "changes",
    "bottleneck", "why", "savings", "alternatives", "frontier", "notes", "solve_s", "catalog_time",
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return small_job(tmp_path)


def _refusal(*arguments: str | Path) -> str:
    """Return the complaint of a command that ends with exit 2 and no result."""
    done = spotwright_here("plan", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    return done.stderr.removeprefix("error: ").rstrip("\n")


@pytest.mark.parametrize("objective", ["cost", "time", "pareto"])
@pytest.mark.parametrize("strategy", ["allreduce", "bsp-ps", "serverless"])
def test_a_plan_has_every_key_and_keeps_what_predict_says_of_its_fleet(
    strategy: str, objective: str, small: Path
) -> None:
    job = {"allreduce": small, "bsp-ps": TEXT_CNN, "serverless": SERVERLESS}[strategy]

    told = told_plan(job, "--objective", objective)

    schema = json.loads(spotwright_here("schema", "plan").stdout)
    jsonschema.validate(told, schema)
    assert set(told) == KEYS
    assert (told["status"], told["strategy"]) == ("optimal", strategy)
    assert told["lower_bound_usd"] <= told["cost_usd"]
    assert 0 <= told["gap_fraction"] <= 0.001 + 1e-9
    assert (told["lower_bound_s"] is not None) == (objective == "time")
    assert bool(told["frontier"]) == (objective == "pareto")
    done = spotwright_here("predict", job, "--fleet", expression(told["fleet"]), "--json")
    predicted = json.loads(done.stdout)
    for figure in ("cost_usd", "duration_s", "low_duration_s", "deadline_probability"):
        assert told[figure] == pytest.approx(predicted[figure])


def test_the_frontier_grows_cheaper_as_time_goes_by(small: Path) -> None:
    frontier = told_plan(small, "--objective", "pareto")["frontier"]

    assert len(frontier) > 2
    seconds, dollars = ([p[key] for p in frontier] for key in ("duration_s", "cost_usd"))
    assert seconds == sorted(seconds)
    assert dollars == sorted(dollars, reverse=True)
    assert all(p["lower_bound_usd"] <= p["cost_usd"] for p in frontier)


def test_flags_override_the_goal_of_the_file(small: Path) -> None:
    usual = told_plan(small)
    soon = told_plan(small, "--deadline", "20h", "--confidence", "99%")
    within = told_plan(small, "--objective", "time", "--budget", "$69.50")

    assert usual["duration_s"] > 20 * 3600 >= soon["duration_s"]
    assert soon["deadline_probability"] >= 0.99
    assert soon["cost_usd"] > usual["cost_usd"]
    assert within["cost_usd"] <= 69.5
    assert within["duration_s"] < soon["duration_s"]


def test_a_lower_loss_takes_more_steps() -> None:
    usual, lower = told_plan(TEXT_CNN), told_plan(TEXT_CNN, "--target-loss", "0.45")

    # Cynthia's law: the steps to a loss go with 1 / (loss - k1)
    ratio = (0.5 - 0.31) / (0.45 - 0.31)
    assert lower["steps_to_goal"] / usual["steps_to_goal"] == pytest.approx(ratio)


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
    enough = told_plan(SERVERLESS, "--deadline", str(change["needed"]))
    assert enough["duration_s"] <= change["needed"] * (1 + 1e-9)


def test_where_no_fleet_will_do_a_person_gets_no_table() -> None:
    done = spotwright_here("plan", SERVERLESS, "--deadline", "1m")

    assert (done.returncode, done.stdout) == (3, "")
    assert "change goal.deadline from 60 s to " in done.stderr


def _rewritten(job: Path, changes: dict[str, str]) -> Path:
    text = job.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    job.write_text(text, encoding="utf-8")
    return job


TYPES = "types: [g4dn.xlarge, g4dn.12xlarge, g5.xlarge]"
NO_QUOTA = {"g-vt: 768": "g-vt: 0", "g-vt: 256": "g-vt: 0"}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({TYPES: f"{TYPES}\n  gpus: [V100]"}, "without limits.gpus there would be 6 pools"),
        ({"zones: [use1-az6]": "zones: [use2-az1]"}, "without limits.zones there would be"),
        ({TYPES: f"{TYPES}\n  markets: [spot]\n  min_on_demand: 50%"}, "min_on_demand from 50% to"),
        (NO_QUOTA, "max_vcpus.spot.g-vt from 0 vCPUs to 12 vCPUs"),  # 3 g4dn.xlarge
        (
            {TYPES: "types: [g5.xlarge]\n  max_count: {g5.xlarge: 0}"},
            "max_count.g5.xlarge from 0 to",
        ),
        ({"deadline: 60h": "deadline: 1h\n  budget: $2"}, "; these help together:\n  change goal."),
    ],
)
def test_limits_that_clash_and_quotas_of_zero_are_exit_3_and_say_what_to_change(
    small: Path, changes: dict[str, str], complaint: str
) -> None:
    done = spotwright_here("plan", _rewritten(small, changes))

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: no fleet meets the goal: ")
    assert complaint in done.stderr


def test_changes_that_help_only_together_are_a_list_of_their_own(small: Path) -> None:
    done = spotwright_here("plan", small, "--deadline", "1h", "--budget", "$2", "--json")

    told = json.loads(done.stdout)
    jsonschema.validate(told, json.loads(spotwright_here("schema", "plan").stdout))
    assert (done.returncode, told["infeasible"]["changes"]) == (3, [])
    deadline, budget = told["infeasible"]["together"]
    assert (deadline["limit"], budget["limit"]) == ("goal.deadline", "goal.budget")
    pair = "--deadline", f"{deadline['needed']}s", "--budget", f"${budget['needed']}"
    assert told_plan(small, *pair)["cost_usd"] <= budget["needed"] * (1 + 1e-9)


def _repriced(folder: Path, price: float | None) -> Path:
    """Write the bundled catalog with that price of g4dn.xlarge wherever it is offered."""
    catalog = json.loads(bundled_path(Cloud.AWS).read_text(encoding="utf-8"))
    for row in catalog["prices"]:
        if row[0] == "g4dn.xlarge":
            row[2:4] = [price, price]
    path = folder / "catalog.json"
    path.write_text(json.dumps(catalog), encoding="utf-8")
    return path


def test_a_type_without_a_price_is_left_out_and_named(small: Path, tmp_path: Path) -> None:
    catalog = _repriced(tmp_path, None)

    told = told_plan(small, "--catalog", catalog)
    _rewritten(small, {TYPES: "types: [g4dn.xlarge]"})
    done = spotwright_here("plan", small, "--catalog", catalog)

    missing = "g4dn.xlarge has no on-demand or spot price in use1-az6"
    assert "g4dn.xlarge" not in {group["instance_type"] for group in told["fleet"]}
    assert f"{missing}: it was left out" in told["notes"]
    assert (done.returncode, done.stdout) == (3, "")
    assert f"nothing is on offer for workers: {missing}; without limits.types" in done.stderr


def test_a_price_of_nothing_is_refused_with_the_catalog(small: Path, tmp_path: Path) -> None:
    assert "a price of 0 is not a price" in _refusal(small, "--catalog", _repriced(tmp_path, 0))


def test_a_gpu_that_nobody_rents_out_is_exit_2(small: Path) -> None:
    _rewritten(small, {TYPES: "gpus: [P100]"})

    assert _refusal(small) == "nobody rents out GPU P100; did you mean V100?"


def test_the_tables_show_the_plan_and_notes_go_to_stderr(small: Path) -> None:
    told = told_plan(small)

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


def test_an_apply_tells_that_its_plan_is_not_proved(tmp_path: Path) -> None:
    program = tmp_path / "terraform"  # that knows its version, and fails at all else
    program.write_text('#!/bin/sh\n[ $1 = version ] && echo \'{"terraform_version": "1.11.4"}\'\n')
    program.chmod(0o755)
    flags = "--gap", "1e-6", "--time-limit", "1s", "--dir", tmp_path / "fleet"

    done = spotwright(
        "apply", *SLOW, *flags, "--terraform", program,
        environment={"AWS_EC2_METADATA_DISABLED": "true"},
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.startswith("stopped at gap ")


def test_a_search_that_ends_without_a_fleet_or_a_proof_is_exit_1() -> None:
    done = spotwright_here("plan", *UNSOLVED, "--time-limit", "1ms", "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: the search was ended before it found a fleet")


@contextmanager
def _on_a_terminal(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a command whose stderr is a terminal, and give what can be read from it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SPOTWRIGHT, *arguments],
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
    with _on_a_terminal("plan", *SLOW, *options) as (process, terminal):
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


def test_an_interrupt_of_the_search_rents_nothing(tmp_path: Path) -> None:
    require_tool("terraform")
    folder = tmp_path / "fleet"
    options = "--gap", "1e-6", "--time-limit", "10 min", "--dir", folder, "--auto-approve"
    with _on_a_terminal("apply", *SLOW, *options) as (process, terminal):
        _read_until(terminal, b"searching: best $")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        shown = _rest(terminal)

    assert process.returncode == 1
    assert shown.decode().rstrip().endswith("\nerror: interrupted")
    assert [path.name for path in folder.iterdir()] == [".spotwright"]  # no root, no variables


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
