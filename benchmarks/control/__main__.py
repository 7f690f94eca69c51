"""Run the cases: `python -m benchmarks.control [--case NAME ...] [--data DIR]`."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.control.cannot_be_late import print_all_zones, print_one_pool
from benchmarks.control.lost_workers import print_lost_workers
from benchmarks.control.options import SEED, DataAbsentError, Options
from benchmarks.control.price_history import print_price_history
from benchmarks.control.speed import print_speed

CASES: dict[str, Callable[[Options], None]] = {
    "one-pool": print_one_pool,
    "all-zones": print_all_zones,
    "price-history": print_price_history,
    "speed": print_speed,
    "lost-workers": print_lost_workers,
}


def main() -> None:
    """Print the tables, then where and how they were run."""
    asked = _asked()
    options = Options(data=asked.data, windows=asked.windows, processes=asked.processes)
    started_s = time.perf_counter()
    for name in asked.case or CASES:
        try:
            CASES[name](options)
        except DataAbsentError as error:
            print(f"\n## {name}: skipped\n\n{error}", flush=True)
        print(f"{name}: {time.perf_counter() - started_s:.0f} s so far", file=sys.stderr)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {load}), {asked.processes} "
        f"processes, Python {platform.python_version()}, {platform.platform()}, seed {SEED}, "
        f"{asked.windows} windows of each cell, {time.perf_counter() - started_s:.0f} s in all"
    )


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.control", description=__doc__)
    parser.add_argument("--case", nargs="*", choices=list(CASES), help="these cases only")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="shared data")
    parser.add_argument("--windows", type=int, default=300, help="runs of each cell")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
