"""What holds whoever is asked: a command prints the same in-process and with --daemon.

The same on stdout but for `solve_s`, the same exit code, the same on stderr but for the name that a
daemon keeps a plan under.
"""

import re
from pathlib import Path
from typing import NamedTuple

from tests.cli.command import spotwright_here

EXAMPLES = Path(__file__).parents[2] / "examples"
_SOLVE_S = re.compile(r'("solve_s": )[\d.e-]+')
_KEPT = re.compile(r"kept as p-.*\n")


class Told(NamedTuple):
    """What a command said."""

    exit_code: int
    stdout: str
    stderr: str


def told(*arguments: str | Path) -> Told:
    """Run a command; how long a search took is left out."""
    done = spotwright_here(*arguments)
    stderr = _KEPT.sub("", done.stderr)
    return Told(done.returncode, _SOLVE_S.sub(r"\g<1>0", done.stdout), stderr)


def assert_same(daemon: str, *arguments: str | Path) -> Told:
    """Run a command both ways and return what it said."""
    here = told(*arguments)
    there = told(*arguments, "--daemon", daemon)
    assert there == here
    return here
