"""What `spotwright apply` takes beyond the Terraform commands that a person would type.

Both rent the same fleet from the same emulated account, emptied before each, by folders with the
same files: one is made by `apply`, the other a copy of it without state. By hand it is
`terraform init`, `plan -out` and `apply` of that file; for a later change `plan` and `apply`.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from spotwright.adapters.terraform.environment import terraform_environment
from spotwright.adapters.terraform.read_variables import read_wanted_fleet
from spotwright.cli.asking import planner_to_ask
from spotwright.cli.fleet_text import rented_text
from spotwright.domain.questions import GoalOverride, JobDocument, PlannedFleet, PlanQuestion
from tests.moto_server import MotoServer, moto_server

_MOST_S = 1.0
_JOB = Path(__file__).parents[2] / "examples" / "resnet50.yaml"
_DEADLINE_H = 12  # instead of 16 h: more nodes
_CHANGE = ("--deadline", f"{_DEADLINE_H}h")
_VARIABLES = "fleet.auto.tfvars.json"
_HEADER = ("figure", "first create", "later change", "target", "verdict")
_SPOTWRIGHT = Path(sys.executable).with_name("spotwright")


@dataclass(slots=True)
class _Seconds:
    """Times of one kind of change, one of each for every repetition."""

    ours: list[float] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)  # the planner's own, without reasons

    @property
    def overhead_s(self) -> float:
        return statistics.median(self.ours) - statistics.median(self.by_hand)

    @property
    def overhead_without_search_s(self) -> float:
        return self.overhead_s - statistics.median(self.search)


def print_overhead(*, quick: bool) -> None:
    """Print both ways side by side; the whole command is what the target is for."""
    repetitions = 1 if quick else 3
    create, change = _Seconds(), _Seconds()
    with moto_server() as moto:
        for _ in range(repetitions):
            with tempfile.TemporaryDirectory(prefix="sw-") as scratch:
                _measure(Path(scratch), moto, create, change)
    both = (create, change)
    worst_s = max(case.overhead_s for case in both)
    lines = [
        ("spotwright apply, s", *(_spread(c.ours) for c in both), "-", "-"),
        ("terraform by hand, s", *(_spread(c.by_hand) for c in both), "-", "-"),
        ("overhead, the search included, s", *_told(c.overhead_s for c in both),
         *against(worst_s, _MOST_S)),
        ("the search for the fleet alone, s", *(_spread(c.search) for c in both), "-", "-"),
        ("overhead without the search, s", *_told(c.overhead_without_search_s for c in both),
         "-", "-"),
    ]  # fmt: skip
    print_table(f"apply beside Terraform by hand, median of {repetitions}", _HEADER, lines)


def _measure(scratch: Path, moto: MotoServer, create: _Seconds, change: _Seconds) -> None:
    """Rent by `apply`, then by hand, and change what each has rented; once."""
    ours, by_hand = scratch / "ours", scratch / "by-hand"
    environment = moto.environment()
    terraform = terraform_environment(environment, config_file=scratch / "terraform.rc")
    apply = [str(_SPOTWRIGHT), "apply", str(_JOB), "--auto-approve", "--dir", str(ours)]

    create.search.append(_search_s(PlanQuestion(without_reasons=True)))
    _forget_all(moto)
    create.ours.append(_timed_s(apply, environment))
    first = (ours / _VARIABLES).read_bytes()
    running = rented_text(read_wanted_fleet(ours / _VARIABLES))
    goal = GoalOverride(deadline_s=_DEADLINE_H * 3600.0)
    replan = PlanQuestion(goal=goal, existing_fleet=running, without_reasons=True)
    change.search.append(_search_s(replan))
    change.ours.append(_timed_s([*apply, *_CHANGE], environment))
    second = (ours / _VARIABLES).read_bytes()
    assert json.loads(first)["pools"] != json.loads(second)["pools"]

    left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*", ".spotwright")
    shutil.copytree(ours, by_hand, ignore=left_out)
    _forget_all(moto)
    (by_hand / _VARIABLES).write_bytes(first)
    init_s = _timed_s(_typed("init"), terraform, folder=by_hand)
    create.by_hand.append(init_s + _by_hand_s(by_hand, terraform))
    (by_hand / _VARIABLES).write_bytes(second)
    change.by_hand.append(_by_hand_s(by_hand, terraform))


def _by_hand_s(folder: Path, environment: dict[str, str]) -> float:
    commands = (_typed("plan", "-out=plan"), _typed("apply", "plan"))
    return sum(_timed_s(command, environment, folder=folder) for command in commands)


def _typed(command: str, *arguments: str) -> list[str]:
    return ["terraform", command, "-no-color", *arguments]


def _forget_all(moto: MotoServer) -> None:
    request = urllib.request.Request(f"{moto.url}/moto-api/reset", method="POST")
    with urllib.request.urlopen(request, timeout=60):
        pass


def _search_s(question: PlanQuestion) -> float:
    """Return what the search takes that `apply` asks for, everything else loaded."""
    with planner_to_ask(daemon=None, tls_dir=None, catalog_file=None) as planner:
        answer = planner.create_plan(JobDocument(text=_JOB.read_text(encoding="utf-8")), question)
    assert isinstance(answer, PlannedFleet)
    return answer.plan.solve_s


def _timed_s(
    command: Sequence[str], environment: dict[str, str], *, folder: Path | None = None
) -> float:
    started_s = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    took_s = time.perf_counter() - started_s
    assert done.returncode == 0, done.stdout + done.stderr
    return took_s


def _spread(took_s: Sequence[float]) -> str:
    return f"{statistics.median(took_s):.2f} ({min(took_s):.2f}-{max(took_s):.2f})"


def _told(values_s: Iterable[float]) -> tuple[str, ...]:
    return tuple(f"{value:.2f}" for value in values_s)
