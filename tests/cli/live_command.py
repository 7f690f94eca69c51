"""A command that is looked on while it runs."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tests.cli.command import SPOTWRIGHT, clean_environment

PATIENCE_S = 60.0


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command whose lines can be waited for; one that hangs is killed."""
    process = subprocess.Popen(
        [SPOTWRIGHT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    giving_up = threading.Timer(PATIENCE_S, process.kill)
    giving_up.start()
    try:
        yield process
    finally:
        giving_up.cancel()
        process.kill()
        process.communicate()


def wait_for(stream: IO[str] | None, text: str) -> str:
    """Read lines up to the one that holds a text."""
    assert stream is not None
    for line in stream:
        if text in line:
            return line
    raise AssertionError(f"no line with {text!r}")
