"""Profile on this machine and check what it says: `python -m benchmarks.profile [--seconds S]`.

Only steps on this machine's CPU: what is checked is the measuring, not what a GPU would do.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime

import torch

from benchmarks.profile.durations import print_durations
from benchmarks.profile.known_stalls import print_known_stalls
from benchmarks.profile.left_out import print_left_out

CASES: dict[str, Callable[[float], None]] = {
    "left-out": print_left_out,
    "known-stalls": print_known_stalls,
    "durations": print_durations,
}


def main() -> None:
    """Print the tables, then where and how they were run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--case", nargs="*", choices=list(CASES), help="these cases only")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each profile")
    asked = parser.parse_args()
    started_s = time.perf_counter()
    for name in asked.case or CASES:
        CASES[name](asked.seconds)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {load}), "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"Python {platform.python_version()}, profiles of {asked.seconds:g} s, "
        f"{time.perf_counter() - started_s:.0f} s in all"
    )


if __name__ == "__main__":
    main()
