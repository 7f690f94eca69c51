"""Run every comparison: `python -m benchmarks.planner [--only NAME ...] [--plots DIR]`."""

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.planner.five_regions import print_five_regions
from benchmarks.planner.growth import Point, print_growth
from benchmarks.planner.large_rings import print_large_rings
from benchmarks.planner.markets import SEED
from benchmarks.planner.one_region import print_one_region
from benchmarks.planner.plots import draw_growth
from benchmarks.planner.reference import print_reference
from benchmarks.planner.replans import print_replans
from benchmarks.planner.solvers import print_solvers
from benchmarks.planner.timing import HURRIED_S, LIMIT_S, tell

TABLES: dict[str, Callable[[], Sequence[object] | None]] = {
    "reference": print_reference,
    "one-region": print_one_region,
    "five-regions": print_five_regions,
    "large-rings": print_large_rings,
    "replans": print_replans,
    "growth": print_growth,
    "solvers": print_solvers,
}


def main() -> None:
    """Print the tables, then where and how they were run."""
    options = _options()
    started_s, points = time.perf_counter(), []
    for name in options.only or TABLES:
        found = TABLES[name]()
        tell(f"{name}: {time.perf_counter() - started_s:.0f} s so far")
        if name == "growth":
            points = [p for p in found or () if isinstance(p, Point)]
    if options.plots is not None and points:
        print(f"\ndrawn: {draw_growth(options.plots, points)}")
    _print_machine(time.perf_counter() - started_s)


def _print_machine(seconds: float) -> None:
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {load}), Python "
        f"{platform.python_version()}, {platform.platform()}, seed {SEED}, gap asked for 0.1 %, "
        f"searches stopped after {LIMIT_S:.0f} s ({HURRIED_S:.0f} s after an open one of the same "
        f"kind), {seconds:.0f} s in all"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(TABLES), help="these tables only")
    parser.add_argument("--plots", type=Path, default=None, help="folder for the picture")
    return parser.parse_args()


if __name__ == "__main__":
    main()
