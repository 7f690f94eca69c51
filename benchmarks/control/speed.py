"""How many 48 h jobs are simulated in a second of one core."""

import time

from benchmarks.control.cannot_be_late import study_of
from benchmarks.control.one_node import CONDITIONS, zone_campaigns
from benchmarks.control.options import Options, require_data
from benchmarks.table import Row, print_rows
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.study import Stage

_TARGETS = {PolicyName.GREEDY: (200.0, 200), PolicyName.OURS: (5.0, 60)}  # per second; runs


def print_speed(options: Options) -> None:
    """Run one job after another in this process, and count CPU seconds."""
    campaigns = zone_campaigns(require_data(options.data / "spot_traces.csv.gz"))
    rows = []
    for policy, (target, most) in _TARGETS.items():
        stage, runs = Stage(study_of(campaigns[2:3], 52.0, CONDITIONS)), min(most, options.windows)
        stage.run(policy, 0)
        started_s = time.process_time()
        for run in range(1, runs + 1):
            stage.run(policy, run)
        per_s = runs / (time.process_time() - started_s)
        rows.append(
            Row(
                what=f"{policy}, {runs} runs of 48 h within 52 h",
                figure=f"{per_s:.1f} jobs per CPU second",
                target=f">= {target:g}",
                is_met=per_s >= target,
            )
        )
    print_rows("Simulator speed, one core", rows)
