import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spotwright.adapters.terraform.process import Ended, run
from spotwright.domain.errors import TerraformError

# Runs a shell command as `run` does, and tells how it ended. The handler of before must be back.
# What the tests were started by, such as nohup, may have signals ignored.
RUNNER = """
import signal, sys
from pathlib import Path
from spotwright.adapters.terraform.process import run
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
before = signal.getsignal(signal.SIGINT)
ended = run(["sh", "-c", sys.argv[1]], folder=Path("."), environment={"PATH": sys.argv[2]},
            say=lambda line: print(line, flush=True))
print(ended.exit_code, ended.stop_count, signal.getsignal(signal.SIGINT) is before, flush=True)
"""
# Ends with the count of its interrupts, once the folder of the test has a file `go`.
COUNTS_INTERRUPTS = (
    "n=0; trap 'n=$((n+1)); echo got $n' INT; echo ready; "
    "while [ ! -e go ]; do sleep 0.05; done; exit $n"
)


def shell(command: str, folder: Path) -> tuple[Ended, list[str]]:
    lines: list[str] = []
    environment = {"PATH": os.environ["PATH"]}
    ended = run(["sh", "-c", command], folder=folder, environment=environment, say=lines.append)
    return ended, lines


@contextmanager
def counting_interrupts(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run what counts its interrupts, and go on once it does."""
    arguments = [sys.executable, "-c", RUNNER, COUNTS_INTERRUPTS, os.environ["PATH"]]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert line_of(process) == "ready"
            yield process
        finally:
            (folder / "go").touch()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_output_and_errors_come_in_the_order_they_were_written(tmp_path: Path) -> None:
    ended, lines = shell("echo one; echo two >&2; echo three; exit 7", tmp_path)

    assert lines == ["one", "two", "three"]
    assert ended == Ended(7, "one\ntwo\nthree", 0)


def test_a_line_is_said_when_it_is_written_and_not_at_the_end(tmp_path: Path) -> None:
    waits = "echo one; for _ in $(seq 600); do [ -e said ] && exit 0; sleep 0.05; done; exit 1"

    ended = run(
        ["sh", "-c", waits],
        folder=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        say=lambda _: (tmp_path / "said").touch(),
    )

    assert ended.exit_code == 0


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    _, lines = shell(r"printf 'caf\351 \303\251\n'", tmp_path)

    assert lines == ["caf\ufffd é"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_as_an_interrupt_and_the_end_awaited(
    tmp_path: Path, number: signal.Signals
) -> None:
    with counting_interrupts(tmp_path) as process:
        process.send_signal(number)

        assert line_of(process) == "got 1"
        (tmp_path / "go").touch()
        assert line_of(process) == "1 1 True"
    assert process.returncode == 0


def test_a_second_ctrl_c_is_passed_on_too(tmp_path: Path) -> None:
    with counting_interrupts(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert line_of(process) == "got 1"
        process.send_signal(signal.SIGINT)

        assert line_of(process) == "got 2"
        (tmp_path / "go").touch()
        assert line_of(process) == "2 2 True"
    assert process.returncode == 0


def test_a_terminal_that_closes_after_a_signal_does_not_stop_it_harder(tmp_path: Path) -> None:
    with counting_interrupts(tmp_path) as process:
        process.send_signal(signal.SIGTERM)
        assert line_of(process) == "got 1"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)  # received after it: then both have been counted

        assert line_of(process) == "got 2"
        (tmp_path / "go").touch()
        assert line_of(process) == "2 2 True"
    assert process.returncode == 0


def test_the_command_ends_by_itself_though_nobody_can_be_told(tmp_path: Path) -> None:
    def say(line: str) -> None:
        raise OSError(f"no terminal for {line}")

    with pytest.raises(OSError, match="no terminal for one"):
        run(
            ["sh", "-c", "echo one; sleep 0.2; echo two; touch ended"],
            folder=tmp_path,
            environment={"PATH": os.environ["PATH"]},
            say=say,
        )

    assert (tmp_path / "ended").exists()


def test_a_thread_that_gets_no_signals_can_run_commands(tmp_path: Path) -> None:
    answers: list[list[str]] = []
    thread = threading.Thread(target=lambda: answers.append(shell("echo one", tmp_path)[1]))

    thread.start()
    thread.join()

    assert answers == [["one"]]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TerraformError, match=r"cannot run sh in .*/absent: No such file"):
        shell("true", tmp_path / "absent")
