"""What is taken for yes when money is spent or machines go away, and what is not."""

import signal
import subprocess
import sys

import pytest

# Asks, and tells how that ended and whether the handler of before is back.
ASKS = """
import signal
from spotwright.cli.approval import ask_approval
from spotwright.domain.errors import SpotwrightError
def former(number, frame): pass
signal.signal(signal.SIGINT, former)
try:
    ask_approval("Rent it?")
    end = "approved"
except SpotwrightError as error:
    end = f"{type(error).__name__}: {error}"
print(end)
print(signal.getsignal(signal.SIGINT) is former)
"""
QUESTION = "Rent it? Only `yes` is taken for yes: "


def asking() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", ASKS], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def answered(text: str) -> tuple[list[str], str]:
    """Return what is printed and told after an answer, and then the end of input."""
    with asking() as process:
        out, told = process.communicate(text, timeout=60)
    assert process.returncode == 0
    return out.splitlines(), told


@pytest.mark.parametrize("answer", ["yes\n", " yes \r\n", "yes"])
def test_yes_is_taken_for_yes(answer: str) -> None:
    assert answered(answer) == (["approved", "True"], QUESTION)


@pytest.mark.parametrize("answer", ["y\n", "no\n", "\n", "YES\n", "yes please\n", "no\nyes\n"])
def test_anything_else_declines(answer: str) -> None:
    assert answered(answer) == (["DeclinedError: nothing was changed", "True"], QUESTION)


def test_the_end_of_input_is_nobody_to_ask_and_ends_the_line_of_the_question() -> None:
    [end, is_former_handler_back], told = answered("")

    assert end.startswith("BadInputError: nobody answered; --auto-approve")
    assert (is_former_handler_back, told) == ("True", f"{QUESTION}\n")


def test_ctrl_c_declines_and_ends_the_line_of_the_question() -> None:
    with asking() as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.read(len(QUESTION)) == QUESTION  # so its handler is in place

        process.send_signal(signal.SIGINT)  # its input stays open

        assert process.stderr.read() == "\n"
        assert process.stdout.read() == "DeclinedError: nothing was changed\nTrue\n"
    assert process.returncode == 0
