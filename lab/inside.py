"""The first process of the laboratory: builds it, runs what is asked for, keeps what came out.

Started by `python -m lab` in namespaces of its own, never by hand.
"""

import os
import platform
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.table import print_rows, print_table
from lab.calibrated import predict_other_half
from lab.experiments import chosen_work
from lab.laboratory import (
    Laboratory,
    agents_running,
    built,
    daemon_running,
    steps_heard,
    until_connected,
)
from lab.options import Options
from lab.picture import draw_comparison
from lab.profile import Profiler
from lab.results import HEADER, calibrated_row, comparison_cells, steps_row, target_rows, write_csv
from lab.run import steps_told
from lab.scenario import Scenario, load_scenarios
from lab.setting import Setting
from lab.speed import compare, write_predictions
from spotwright.client import Client
from spotwright.domain.errors import SpotwrightError

_SENT_WITHIN_S = 30.0


def main() -> int:
    """Do what the one argument says."""
    options = Options.from_json(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began_s = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="spotwright-lab-") as folder:
            _work(options, Path(folder))
    except KeyboardInterrupt:
        print("lab: stopped; nothing is left behind", file=sys.stderr)
        return 130
    except (SpotwrightError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs (load {load}), Python "
        f"{platform.python_version()}, {platform.platform()}, seed {options.seed}, "
        f"{time.monotonic() - began_s:.0f} s in all; kept in {options.out}"
    )
    return 0


def _work(options: Options, folder: Path) -> None:
    scenarios, experiments = chosen_work(options.names, load_scenarios(options.scenarios))
    _tell("building switch, hosts, daemon and agents")
    with (
        built(folder, owner_pid=options.owner_pid) as lab,
        daemon_running(lab) as client,
        agents_running(lab) as agents,
    ):
        until_connected(client)
        if scenarios:
            _compare(lab, client, scenarios, options)
        for experiment in experiments:
            lab.reset()
            experiment(Setting(lab=lab, client=client, agents=agents, options=options))


def _compare(lab: Laboratory, client: Client, scenarios: list[Scenario], options: Options) -> None:
    _tell("profiling one worker, of each device and each model")
    profile = Profiler(lab, tell=_tell).profile(scenarios)
    path = options.out / "predictions.json"
    predicted = write_predictions(path, scenarios, profile)
    _tell(f"predictions are in {path}; now the scenarios")
    rows = compare(
        lab,
        scenarios,
        predicted,
        seconds=options.seconds,
        seed=options.seed,
        tell=lambda row: _tell("  ".join(comparison_cells(row))),
    )
    print_table("Predicted against measured", HEADER, [comparison_cells(row) for row in rows])
    told = steps_told(lab)
    heard_row = steps_row(told=told, heard=_steps_heard(client, wanted=told))
    print_rows("All scenarios together", [*target_rows(rows), heard_row])
    if others := predict_other_half(rows, profile):
        print_rows("Calibrated with the other half", [calibrated_row(others)])
    write_csv(options.out / "scenarios.csv", rows)
    draw_comparison(options.out / "scenarios.png", rows)


def _steps_heard(client: Client, *, wanted: int) -> int:
    """Return how many steps the daemon was told; agents send them every few seconds."""
    end_s = time.monotonic() + _SENT_WITHIN_S
    while (heard := steps_heard(client)) < wanted and time.monotonic() < end_s:
        time.sleep(1.0)
    return heard


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
