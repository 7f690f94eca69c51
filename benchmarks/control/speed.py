"""How many 48 h jobs are simulated in a second of one core, from nothing remembered."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.control.cannot_be_late import CHECKPOINT_GB, USD_PER_GB, study_of
from benchmarks.control.one_node import CONDITIONS, zone_campaigns
from benchmarks.control.options import Options, require_data
from benchmarks.table import Row, print_rows
from spotwright.simulator.campaign import Campaign
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.study import Stage, Study

_MOVING = replace(CONDITIONS, checkpoint_gb=CHECKPOINT_GB, move_usd_per_gb=USD_PER_GB)


class _Case(NamedTuple):
    """What is run how often, and how fast it should be."""

    what: str
    policy: PolicyName
    study: Study
    least_per_s: float
    most_runs: int


def print_speed(options: Options) -> None:
    """Run one job after another in this process, and count CPU seconds."""
    campaigns = zone_campaigns(require_data(options.data / "spot_traces.csv.gz"))
    rows = []
    for case in _cases(campaigns):
        runs = min(case.most_runs, options.windows)
        stage = Stage(case.study)
        stage.run(case.policy, 0)
        started_s = time.process_time()
        for run in range(1, runs + 1):
            stage.run(case.policy, run)
        per_s = runs / (time.process_time() - started_s)
        rows.append(
            Row(
                what=f"{case.policy}, {case.what}: {runs} runs of 48 h within 52 h",
                figure=f"{per_s:.1f} jobs per CPU second",
                target=f">= {case.least_per_s:g}",
                is_met=per_s >= case.least_per_s,
            )
        )
    print_rows("Simulator speed, one core", rows)


def _cases(campaigns: Sequence[Campaign]) -> list[_Case]:
    alone = study_of(campaigns[2:3], 52.0, CONDITIONS)
    return [
        _Case("one pool", PolicyName.GREEDY, alone, 200.0, 200),
        _Case("one pool", PolicyName.OURS, alone, 5.0, 60),
        _Case("five pools", PolicyName.OURS, study_of(campaigns, 52.0, _MOVING), 5.0, 60),
    ]
