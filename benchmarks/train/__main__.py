"""Run the cases: `python -m benchmarks.train [--case NAME ...]`."""

import argparse
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime

import torch

from benchmarks.train.job_processes import SEED, preload
from benchmarks.train.losses import print_loss_of_server, print_losses_of_workers
from benchmarks.train.reporter import print_reporter
from benchmarks.train.throughput import print_throughput

CASES: dict[str, Callable[[], None]] = {
    "throughput": print_throughput,
    "workers": print_losses_of_workers,
    "server": print_loss_of_server,
    "reporter": print_reporter,
}


def main() -> None:
    """Print the tables, then where and how they were run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description=__doc__)
    parser.add_argument("--case", nargs="*", choices=list(CASES), help="these cases only")
    asked = parser.parse_args()
    preload()
    started_s = time.perf_counter()
    for name in asked.case or CASES:
        CASES[name]()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {load}), Python "
        f"{platform.python_version()}, PyTorch {torch.__version__} on the CPU, one thread for each "
        f"process, {platform.platform()}, seed {SEED}, {time.perf_counter() - started_s:.0f} s in "
        "all"
    )


if __name__ == "__main__":
    main()
