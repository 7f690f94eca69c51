"""Run the cases: `python -m benchmarks.daemon [--case NAME ...] [--quick]`."""

import argparse
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.daemon.ingest_cases import print_ingest, print_many_agents, print_storm
from benchmarks.daemon.planning_cases import print_create_plan, print_long_plan, print_predict
from benchmarks.daemon.restart_case import print_restart

CASES: dict[str, Callable[..., None]] = {
    "predict": print_predict,
    "create-plan": print_create_plan,
    "long-plan": print_long_plan,
    "restart": print_restart,
    "ingest": print_ingest,
    "many-agents": print_many_agents,
    "storm": print_storm,
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
        f"{platform.python_version()}, {platform.platform()}, mutual TLS, SQLite, the agents in a "
        f"second process on the same CPUs, {time.perf_counter() - started_s:.0f} s in all"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.daemon", description=__doc__)
    parser.add_argument("--case", nargs="*", choices=list(CASES), help="these cases only")
    parser.add_argument("--quick", action="store_true", help="a tenth of the agents, for seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
