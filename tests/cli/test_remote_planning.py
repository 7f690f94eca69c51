import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spotwright.adapters.grpc.planning.workers import SEARCH
from tests.cli.command import SPOTWRIGHT, clean_environment, spotwright, spotwright_here
from tests.cli.small_job import EXAMPLES, small_job
from tests.served_planner import ServedPlanner, served_planner

RESNET = EXAMPLES / "resnet50.yaml"
PREDICT = ("predict", RESNET, "--fleet", "g5.xlarge", "--json")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlanner]:
    with served_planner(tmp_path_factory.mktemp("daemon")) as served:
        yield served


def until(happened: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def test_a_daemon_of_the_environment_is_asked(served: ServedPlanner) -> None:
    here = spotwright(*PREDICT)
    there = spotwright(*PREDICT, environment={"SPOTWRIGHT_DAEMON": served.address})
    nowhere = spotwright(*PREDICT, environment={"SPOTWRIGHT_DAEMON": "127.0.0.1:1"})

    assert there.stdout == here.stdout
    assert (nowhere.returncode, nowhere.stdout) == (1, "")
    assert nowhere.stderr.startswith("error: no daemon answers at 127.0.0.1:1 ")


def test_the_flag_wins_over_the_environment(served: ServedPlanner) -> None:
    nowhere = {"SPOTWRIGHT_DAEMON": "127.0.0.1:1"}

    done = spotwright(*PREDICT, "--daemon", served.address, environment=nowhere)

    assert done.returncode == 0


def test_a_catalog_that_a_flag_names_wins_over_a_daemon_of_the_environment(tmp_path: Path) -> None:
    missing = tmp_path / "none.json"

    done = spotwright(
        *PREDICT, "--catalog", missing, environment={"SPOTWRIGHT_DAEMON": "127.0.0.1:1"}
    )

    assert done.stderr == f"error: catalog {missing}: no such file\n"


@pytest.mark.parametrize(
    "command",
    [
        PREDICT,
        ("plan", RESNET),
        ("compare", RESNET, "--fleet", "g5.xlarge", "--fleet", "g6.xlarge"),
        ("catalog", "list"),
        ("catalog", "show", "g5.xlarge"),
    ],
)
def test_a_catalog_file_and_a_daemon_do_not_go_together(command: tuple[str | Path, ...]) -> None:
    done = spotwright_here(*command, "--catalog", "x.json", "--daemon", "127.0.0.1:1")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--daemon has its own: drop one" in done.stderr


@pytest.mark.parametrize(
    ("flags", "code", "complaint"),
    [
        (("--daemon", "nonsense"), 2, "'nonsense' is no address; write HOST:PORT"),
        (("--daemon", "plans.example.org:7443"), 2, "is reached by TLS only"),
        (("--daemon", "127.0.0.1:1"), 1, "no daemon answers at 127.0.0.1:1"),
        (("--tls-dir", "tls"), 2, "--tls-dir goes with --daemon"),
        (("--daemon", "127.0.0.1:1", "--tls-dir", "none"), 2, "cannot read none/ca.crt"),
    ],
)
def test_a_daemon_that_cannot_be_asked_is_one_line(
    flags: tuple[str, ...], code: int, complaint: str
) -> None:
    done = spotwright_here(*PREDICT, *flags)

    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_fleet_that_is_no_text_is_bad_input_here_and_there(served: ServedPlanner) -> None:
    flags = ("predict", str(RESNET), "--fleet", b"g5.\xff")
    here, there = (
        subprocess.run(
            [SPOTWRIGHT, *flags, *more], capture_output=True, check=False, env=clean_environment()
        )
        for more in ((), ("--daemon", served.address))
    )

    assert there.returncode == here.returncode == 2
    assert there.stderr.partition(b"'")[0] == here.stderr.partition(b"'")[0]


def test_ctrl_c_ends_the_search_of_the_daemon(served: ServedPlanner) -> None:
    flags = ("--gap", "1e-9", "--time-limit", "5m", "--daemon", served.address)
    command = (str(SPOTWRIGHT), "plan", str(EXAMPLES / "bert.yaml"), *flags)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()
    ) as asking:
        until(lambda: served.pool.running_count(SEARCH) == 1)
        os.kill(asking.pid, signal.SIGINT)
        out, told = asking.communicate()

    assert (asking.returncode, out, told) == (1, "", "error: interrupted\n")
    until(lambda: served.pool.running_count(SEARCH) == 0)


def test_with_a_daemon_the_planner_is_not_imported(served: ServedPlanner, tmp_path: Path) -> None:
    program = (
        "import sys, atexit\n"
        "heavy = {'numpy', 'scipy', 'ortools'}\n"
        "atexit.register(lambda: print(heavy & set(sys.modules), file=sys.stderr))\n"
        "from spotwright.cli.entry import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [SPOTWRIGHT.with_name("python"), "-c", program, "plan", small_job(tmp_path), "--json",
         "--daemon", served.address],
        capture_output=True, text=True, check=True, env=clean_environment(),
    )  # fmt: skip

    assert done.stderr.splitlines()[-1] == "set()"
