"""How long the whole command takes, and what its measuring adds to a step."""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.table import Row, print_rows
from spotwright.profiler.devices import HOST
from spotwright.profiler.find import find_subject
from spotwright.profiler.training import Trainee

_SCRIPTS = ("examples/models/small_cnn.py", "examples/models/tiny_transformer.py")
_LONGEST_S = 120.0
_MOST_OVERHEAD = 0.01
_ROUNDS, _STEPS, _BATCH = 15, 5, 16


def print_durations(seconds: float) -> None:
    """Run the command for each example, then steps with and without being timed."""
    rows = [_duration(script, seconds) for script in _SCRIPTS]
    print_rows("Duration and overhead", [*rows, _overhead(_SCRIPTS[0])])


def _duration(script: str, seconds: float) -> Row:
    command = str(Path(sys.executable).with_name("spotwright"))
    start_s = time.perf_counter()
    done = subprocess.run(
        [command, "profile", script, "--json", "--seconds", str(seconds)],
        capture_output=True,
        text=True,
        check=False,
    )
    took_s = time.perf_counter() - start_s
    told = "" if done.returncode == 0 else f", failed: {done.stderr.strip()}"
    return Row(
        what=f"spotwright profile {script}",
        figure=f"{took_s:.0f} s{told}",
        target=f"< {_LONGEST_S:.0f} s",
        is_met=took_s < _LONGEST_S and done.returncode == 0,
    )


def _overhead(script: str) -> Row:
    """Compare steps that are timed one by one with the same number in one go, turn by turn."""
    trainee = Trainee(find_subject(script), HOST)
    batch = trainee.batch(_BATCH)
    ratios = []
    for _ in range(_ROUNDS):
        start_s = time.perf_counter()
        for _ in range(_STEPS):
            trainee.step(batch, size=_BATCH)
        plain_s = time.perf_counter() - start_s
        start_s = time.perf_counter()
        for _ in range(_STEPS):
            trainee.timed_step(batch, size=_BATCH, clock=time.perf_counter)
        ratios.append((time.perf_counter() - start_s) / plain_s - 1)
    return Row(
        what="timing a step, of the step",
        figure=f"{median(ratios):+.1%} (rounds {min(ratios):+.0%} to {max(ratios):+.0%})",
        target=f"<= {_MOST_OVERHEAD:.0%}",
        is_met=median(ratios) <= _MOST_OVERHEAD,
    )
