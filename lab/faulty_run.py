"""What became of updates in a run with faults, from what servers and workers wrote down.

An update is acknowledged once its worker has written down the step: it had the server's answer
then. An answer that comes after the last update may be a refusal, since training is over.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from lab.run import Applied, Outcome, run_scenario
from lab.scenario import Fault, Scenario, load_scenarios
from lab.setting import Setting
from spotwright.domain.errors import BadInputError

_FOLDER = "faults"


class Happened(NamedTuple):
    """A fault, and when."""

    fault: Fault
    at_s: float


def tell(text: str) -> None:
    """Tell somebody who waits what is done now."""
    print(text, file=sys.stderr, flush=True)


def fault_scenarios(scenarios: Path, beginning: str) -> list[Scenario]:
    """Return the scenarios with faults, beside a folder of others, whose names begin so.

    Raises:
        BadInputError: there is none.
    """
    folder = scenarios / _FOLDER
    found = [s for name, s in load_scenarios(folder).items() if name.startswith(beginning)]
    if not found:
        raise BadInputError(f"{folder} has no scenario {beginning!r}")
    return found


def steps_of(scenario: Scenario) -> int:
    """Return how many updates a scenario with faults makes.

    Raises:
        BadInputError: it does not say.
    """
    if scenario.steps is None:
        raise BadInputError(f"{scenario.name}: steps is missing, which faults need")
    return scenario.steps


def run_with_faults(setting: Setting, scenario: Scenario) -> Outcome:
    """Run a scenario to its end."""
    tell(scenario.name)
    seed = setting.options.seed
    return run_scenario(setting.lab, scenario, steps=steps_of(scenario), seed=seed)


def happened(outcome: Outcome, scenario: Scenario) -> list[Happened]:
    """Return the faults in their order."""
    in_order = sorted(scenario.faults, key=lambda fault: fault.at_s)
    return [Happened(*pair) for pair in zip(in_order, outcome.faults_at_s, strict=True)]


def longest_gap_s(applied: Sequence[Applied], begin_s: float, end_s: float) -> float:
    """Return the longest time without an update within some time."""
    inside = [one.at_s for one in applied if begin_s <= one.at_s <= end_s]
    return max(b - a for a, b in pairwise([begin_s, *inside, end_s]))


def acknowledged(outcome: Outcome, applied: Sequence[Applied]) -> list[tuple[str, int]]:
    """Return the updates that workers know to be made, as worker and its count."""
    over_s = applied[-1].at_s
    return [
        (worker, step.number)
        for worker, own in outcome.steps.items()
        for step in own
        if step.ended_s < over_s
    ]


def lost_count(outcome: Outcome, applied: Sequence[Applied]) -> int:
    """Return how many acknowledged updates a server never made."""
    made = {(one.worker, one.sequence) for one in applied}
    return sum(update not in made for update in acknowledged(outcome, applied))


def twice_count(applied: Sequence[Applied]) -> int:
    """Return how many updates a server made again that it had made already."""
    counts = Counter((one.worker, one.sequence) for one in applied)
    return sum(count - 1 for count in counts.values())
