"""The laboratory: real training on hosts and links of this machine, held against predictions.

    make lab                                        everything; about an hour on a quiet machine
    sudo .venv/bin/python -m lab asp-4 ring-2       scenarios whose names begin so
    sudo .venv/bin/python -m lab loss-law           one experiment
    .venv/bin/python -m lab --list                  what there is

Needs root, and leaves nothing behind: hosts are network namespaces inside namespaces of its own.
docs/lab.md has the method, its limits and the figures.
"""

import argparse
import os
import sys
from pathlib import Path

from lab.cpu_quota import remove_groups
from lab.enclave import check_rights, run_inside
from lab.experiments import EXPERIMENTS, chosen_work
from lab.options import Options
from lab.scenario import FOLDER, load_scenarios
from spotwright.domain.errors import BadInputError, SpotwrightError


def main() -> int:
    """Run what is asked for, in namespaces that end with it."""
    asked = _asked()
    try:
        if asked.list:
            _list(asked.scenarios)
            return 0
        chosen_work(asked.name, load_scenarios(asked.scenarios))  # complain before it takes time
        check_rights()
        options = Options(
            names=tuple(asked.name),
            scenarios=asked.scenarios.resolve(),
            out=asked.out.resolve(),
            seconds=asked.seconds,
            seed=asked.seed,
            owner_pid=os.getpid(),
        )
        options.out.mkdir(parents=True, exist_ok=True)
    except BadInputError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except (SpotwrightError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    try:
        return run_inside("lab.inside", [options.to_json()])
    finally:
        remove_groups(os.getpid())


def _list(folder: Path) -> None:
    for name, experiment in EXPERIMENTS.items():
        print(f"{name:28} {(experiment.__doc__ or '').splitlines()[0]}")
    for scenario in load_scenarios(folder).values():
        workers, servers = len(scenario.workers), scenario.server_count
        megabytes = scenario.model.parameter_bytes / 1e6
        print(
            f"{scenario.name:28} {scenario.strategy}, {workers} workers, {servers} servers, "
            f"{megabytes:g} MB"
        )


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help="experiments, or scenarios by how they begin")
    parser.add_argument("--list", action="store_true", help="tell what there is")
    parser.add_argument("--scenarios", type=Path, default=FOLDER, help="folder of YAML files")
    parser.add_argument("--out", type=Path, default=Path("lab-results"), help="where results go")
    parser.add_argument("--seconds", type=float, default=25.0, help="of each scenario [25]")
    parser.add_argument("--seed", type=int, default=7, help="of what is drawn [7]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
