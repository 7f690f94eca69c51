"""Run the cases: `python -m benchmarks.agent [--case NAME ...] [--quick]`."""

import argparse
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.agent.footprint import print_footprint, print_start
from benchmarks.agent.full_disk import print_full_disk
from benchmarks.agent.notices import print_notices
from benchmarks.agent.outages import print_outages
from benchmarks.agent.step_reporter import print_step_reporter

CASES: dict[str, Callable[..., None]] = {
    "footprint": print_footprint,
    "start": print_start,
    "notices": print_notices,
    "outages": print_outages,
    "full-disk": print_full_disk,
    "step-reporter": print_step_reporter,
}


def main() -> None:
    """Print the tables, then where and how they were run."""
    options = _options()
    started_s = time.perf_counter()
    for name in options.case or CASES:
        CASES[name](quick=options.quick)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {load}), Python "
        f"{platform.python_version()}, {platform.platform()}, mutual TLS, NVML is a stub, the "
        f"daemon on the same CPUs, {time.perf_counter() - started_s:.0f} s in all"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent", description=__doc__)
    parser.add_argument("--case", nargs="*", choices=list(CASES), help="these cases only")
    parser.add_argument("--quick", action="store_true", help="shorter, to see that it works")
    return parser.parse_args()


if __name__ == "__main__":
    main()
