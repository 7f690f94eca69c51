"""`spotwright train` with all roles on this machine, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import spotwright_here
from tests.train.role_process import ROOT, SCRIPT

_COMMAND = "from spotwright.cli.entry import main; main()"
PLAN = {
    "status": "optimal",
    "strategy": "bsp-ps",
    "steps_to_goal": 12.2,
    "weighted_batch": 48.0,
    "fleet": [
        {"role": "worker", "node_count": 1},
        {"role": "worker", "node_count": 1},
        {"role": "ps", "node_count": 2},
    ],
}


def train(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _COMMAND, "train", *arguments, "--json"],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_plan_is_rehearsed_with_its_roles_and_steps(tmp_path: Path) -> None:
    plan, example = tmp_path / "plan.json", "examples/training/elastic.py"
    plan.write_text(json.dumps(PLAN))

    run = train(example, "--plan", str(plan), "--checkpoint", str(tmp_path))
    done = json.loads(run.stdout)

    assert "PyTorch's threads of each: 1" in run.stderr or len(os.sched_getaffinity(0)) >= 8
    assert done["strategy"] == "bsp-ps"
    assert [server["version"] for server in done["servers"]] == [12, 12]
    assert [(w["worker"], w["applied"]) for w in done["workers"]] == [("w0", 12), ("w1", 12)]
    assert [w["samples"] for w in done["workers"]] == [12 * 24, 12 * 24]  # of 48 in a round
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == [
        "shard-0-of-2.ckpt",
        "shard-1-of-2.ckpt",
    ]


@pytest.mark.parametrize(
    ("build", "told"),
    [
        ("build_spoiled", "loss is nan on worker w1 at step 5"),
        ("build_empty", "worker w0: an empty batch at step 2"),
        ("build_too_large", "a batch of 32 needs 372529.0 GiB on the CPU here"),
    ],
)
def test_a_worker_that_cannot_go_on_ends_all_and_is_named(build: str, told: str) -> None:
    run = train(f"{SCRIPT}:{build}", "--workers", "2", "--steps", "1000000")

    assert run.returncode in (1, 2)
    assert told in run.stderr  # of the worker itself, or of one that the server told


def test_a_worker_that_is_killed_is_told_and_the_others_go_on() -> None:
    in_step = "--strategy", "bsp-ps"  # or w0 might make all steps before w1 is killed
    run = train(f"{SCRIPT}:build_killed", "--workers", "2", "--steps", "100", *in_step)
    done = json.loads(run.stdout)

    assert "worker w1 was killed (SIGKILL), the others go on" in run.stderr
    assert (done["servers"][0]["version"], [w["worker"] for w in done["workers"]]) == (100, ["w0"])


def test_a_worker_that_comes_when_the_others_have_ended_is_told_that_training_is_over(
    tmp_path: Path,
) -> None:
    pids = str(tmp_path)
    run = train(f"{SCRIPT}:build_late", "--workers", "2", "--steps", "100", TASK_SCRIPT_PIDS=pids)
    done = json.loads(run.stdout)

    assert [(one["worker"], one["ended"]) for one in done["workers"]] == [
        ("w0", "over"),
        ("w1", "late"),
    ]
    assert done["servers"][0]["version"] == 100


def test_training_whose_workers_were_all_killed_ends_and_says_so() -> None:
    run = train(f"{SCRIPT}:build_all_killed", "--workers", "2", "--steps", "100")

    assert run.returncode == 1
    assert "no worker is left and training is not over" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([SCRIPT, "--batch", "0"], "a batch of 0 samples"),
        ([SCRIPT, "--strategy", "bsp-ps", "--servers", "0"], "--servers counts from 1"),
        ([SCRIPT, "--servers", "a:1"], "addresses go with --role worker"),
        ([SCRIPT, "--role", "ps"], "--role ps needs --listen"),
        ([SCRIPT, "--role", "worker"], "--role worker needs --servers"),
        ([SCRIPT, "--plan", "a", "--job", "b"], "give one of them"),
        ([SCRIPT, "--plan", "/dev/null"], "is not what `spotwright plan --json` prints"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments: list[str], told: str) -> None:
    done = spotwright_here("train", *arguments)

    assert done.returncode == 2
    assert told in done.stderr


def test_a_plan_that_all_reduces_names_the_recipe(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN | {"strategy": "allreduce"}))

    done = spotwright_here("train", SCRIPT, "--plan", plan)

    assert (done.returncode, "torchrun" in done.stderr) == (2, True)
