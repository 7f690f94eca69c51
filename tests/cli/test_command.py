"""The command as a whole: help, exit codes, pipes, terminals, completion, missing extras."""

import json
import os
import pty
import subprocess
import termios
from importlib.metadata import version
from pathlib import Path

import pytest

from spotwright.cli.entry import exit_code
from spotwright.domain import errors
from tests.cli.command import SPOTWRIGHT, clean_environment, python, spotwright

HEAVY = {"numpy", "pydantic", "yaml", "ortools", "boto3", "grpc", "scipy", "google", "sqlalchemy"}
RESNET = ["examples/resnet50.yaml", "--fleet", "g5.xlarge"]
RUN = "from spotwright.cli.entry import main; main()"
WITHOUT = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def test_help_lists_commands_and_exit_codes() -> None:
    done = spotwright("--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "catalog" in done.stdout
    assert "3 no feasible fleet" in done.stdout


@pytest.mark.parametrize(
    "command", ["plan", "compare", "catalog", "schema", "catalog list", "schema job", "schema plan"]
)
def test_every_command_has_help(command: str) -> None:
    done = spotwright(*command.split(), "-h")

    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: spotwright {command}" in done.stdout


def test_the_version_is_that_of_the_distribution() -> None:
    assert spotwright("--version").stdout == f"spotwright {version('spotwright')}\n"


@pytest.mark.parametrize("arguments", [["frobnicate"], ["catalog", "frobnicate"], ["--frobnicate"]])
def test_bad_usage_is_exit_2_and_said_on_stderr(arguments: list[str]) -> None:
    done = spotwright(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "frobnicate" in done.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BadInputError("x"), 2),
        (errors.UnitError("x", expected="y"), 2),
        (errors.PinnedPoolError("x", pool="y"), 2),
        (errors.NoFeasibleFleetError(clashes=["x"], changes=[]), 3),
        (errors.SolverGaveUpError("x"), 1),
        (errors.OutsideWorldError("x"), 1),
        (errors.MissingExtraError("x", extra="y"), 1),
        (errors.SpotwrightError("x"), 1),
    ],
)
def test_an_error_has_the_exit_code_of_its_branch(error: errors.SpotwrightError, code: int) -> None:
    assert exit_code(error) == code


def test_nothing_heavy_is_imported_to_show_help() -> None:
    show_loaded = (
        "import sys, atexit;"
        "atexit.register(lambda: print(*{m.split('.')[0] for m in sys.modules}, file=sys.stderr));"
    )

    done = python(show_loaded + RUN, "--help")

    loaded = set(done.stderr.split())
    assert "typer" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize(
    ("hidden", "arguments", "extra"),
    [
        ({"typer"}, ["--help"], "plan"),
        ({"numpy"}, ["catalog", "list"], "plan"),
        ({"numpy"}, ["catalog", "show", "g5.xlarge"], "plan"),
        ({"yaml"}, ["catalog", "list", "--job", "examples/resnet50.yaml"], "plan"),
        ({"numpy"}, ["predict", *RESNET], "plan"),
        ({"scipy"}, ["predict", *RESNET], "plan"),
        ({"ortools"}, ["plan", RESNET[0]], "plan"),
        ({"scipy"}, ["compare", *RESNET, "--fleet", "g6.xlarge"], "plan"),
        ({"boto3", "botocore"}, ["catalog", "refresh"], "aws"),
    ],
)
def test_a_missing_extra_is_named(hidden: set[str], arguments: list[str], extra: str) -> None:
    done = python(WITHOUT.format(hidden=hidden) + RUN, *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith(f"pip install 'spotwright[{extra}]'\n")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("spotwright.cli.app", ["--help"]),
        ("spotwright.adapters.catalog.catalog", ["catalog", "list"]),
        ("spotwright.adapters.jobfile.quantities", ["schema", "job"]),
        ("spotwright.usecases.predict_fleet", ["predict", *RESNET]),
        ("spotwright.adapters.jobfile.read", ["predict", *RESNET]),
    ],
)
def test_a_module_of_our_own_that_is_missing_is_not_taken_for_an_extra(
    module: str, arguments: list[str]
) -> None:
    done = python(f"import sys; sys.modules[{module!r}] = None\n" + RUN, *arguments)

    assert done.returncode == 1
    assert module in done.stderr.splitlines()[-1]
    assert "pip install" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["-h"], ["--version"], ["schema", "job"], ["catalog", "list"], ["catalog", "list", "--json"]],
)
def test_a_full_disk_is_one_line_and_exit_1(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [SPOTWRIGHT, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=clean_environment(),
        )

    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if " offers; prices of " not in line]
    assert told == ["error: cannot write the result: No space left on device"]


def test_a_stdout_that_the_shell_closed_is_nobodys_fault() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" --version >&-', SPOTWRIGHT],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [["catalog", "list", "--retired", "--json"], ["catalog", "list"], ["--help"]]
)
@pytest.mark.parametrize("line_count", [0, 1])
def test_a_closed_pipe_ends_without_a_word(arguments: list[str], line_count: int) -> None:
    process = subprocess.Popen(
        [SPOTWRIGHT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    assert process.stdout is not None
    for _ in range(line_count):
        process.stdout.readline()
    process.stdout.close()

    _, told = process.communicate()

    # A short answer may have fitted the pipe before it was closed; then its note is in order.
    assert [line for line in told.splitlines() if b" offers; prices of " not in line] == []


def _on_a_terminal(*arguments: str, term: str) -> str:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [SPOTWRIGHT, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=clean_environment(TERM=term),
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    process.wait()
    return shown.decode()


@pytest.mark.parametrize("arguments", [["catalog", "show", "g5.xlarge"], ["--help"]])
def test_a_dumb_terminal_gets_plain_text_and_a_real_one_does_not(arguments: list[str]) -> None:
    plain = _on_a_terminal(*arguments, term="dumb")
    rich = _on_a_terminal(*arguments, term="xterm")

    assert plain.isascii()
    assert "\x1b" not in plain
    assert "\x1b[" in rich
    assert not rich.isascii()


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_a_narrow_terminal_cuts_no_figure_short(term: str) -> None:
    arguments = ["catalog", "list", "--gpu", "T4", "--zone", "use1-az4"]

    shown = _on_a_terminal(*arguments, term=term)

    assert "…" not in shown
    for offer in json.loads(spotwright(*arguments, "--json").stdout)["offers"]:
        assert offer["instance_type"] in shown
        assert f"{offer['price_usd_per_hour']:.4f}" in shown


def test_a_bad_usage_message_is_plain_on_a_dumb_terminal_too() -> None:
    told = _on_a_terminal("catalog", "list", "--frobnicate", term="dumb")

    assert "No such option: --frobnicate" in told
    assert told.isascii()
    assert "\x1b" not in told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_each_shell(shell: str) -> None:
    done = spotwright(environment={"_SPOTWRIGHT_COMPLETE": f"source_{shell}"})

    assert f"_SPOTWRIGHT_COMPLETE=complete_{shell}" in done.stdout


def test_completion_knows_the_commands_and_their_flags() -> None:
    def completions(words: str) -> list[str]:
        asked = {"_SPOTWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": words}
        place = str(len(words.split()) - 1)
        return spotwright(environment=asked | {"COMP_CWORD": place}).stdout.split()

    assert completions("spotwright cat") == ["catalog"]
    assert completions("spotwright catalog list --max") == ["--max-price"]
    assert completions("spotwright catalog list --market s") == ["spot"]
