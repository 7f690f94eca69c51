"""Run the cases: `python -m benchmarks.terraform [--case NAME ...] [--quick]`."""

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks.terraform.overhead import print_overhead
from benchmarks.terraform.sizes import print_sizes
from benchmarks.terraform.variables_file import print_variables_file

CASES: dict[str, Callable[..., None]] = {
    "variables-file": print_variables_file,
    "overhead": print_overhead,
    "sizes": print_sizes,
}


def main() -> None:
    """Print the tables, then where and how they were run."""
    options = _options()
    started_s, before = time.perf_counter(), _load()
    for name in options.case or CASES:
        CASES[name](quick=options.quick)
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {before} before, {_load()} "
        f"after), Python {platform.python_version()}, {platform.platform()}, Terraform "
        f"{_terraform_version()}, moto {version('moto')} on the same CPUs, "
        f"{time.perf_counter() - started_s:.0f} s in all"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.terraform", description=__doc__)
    parser.add_argument("--case", nargs="*", choices=list(CASES), help="these cases only")
    parser.add_argument("--quick", action="store_true", help="less often, to see that it works")
    return parser.parse_args()


def _load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def _terraform_version() -> str:
    told = subprocess.run(["terraform", "version", "-json"], capture_output=True, check=True)
    return str(json.loads(told.stdout)["terraform_version"])


if __name__ == "__main__":
    main()
