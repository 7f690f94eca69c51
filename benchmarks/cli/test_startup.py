"""How long a user waits for `spotwright --help`, a new process each time.

Target: 0.4 s on a laptop. It is not asserted here: the figure depends on the machine and on what
else runs; tests/cli/test_command.py holds the cause, that nothing heavy is imported at the start.
"""

import subprocess
import sys
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

SPOTWRIGHT = Path(sys.executable).with_name("spotwright")


def _help() -> str:
    return subprocess.run([SPOTWRIGHT, "--help"], capture_output=True, text=True, check=True).stdout


def test_time_to_show_help(benchmark: BenchmarkFixture) -> None:
    shown = benchmark.pedantic(_help, rounds=10, warmup_rounds=1)

    assert "Usage: spotwright" in shown
