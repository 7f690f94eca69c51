"""How fast a cluster stepped, from what its workers wrote down."""

from collections.abc import Sequence

from lab.run import Outcome, Step
from lab.scenario import Scenario
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.workload import Strategy

_WARM_UP_STEPS = 3  # of each worker: connections open, windows grow, memory is touched
_SPLIT_STEPS = 41  # until an all-reduce of unequal devices has split its batch by speed, twice


def warm_up_steps(scenario: Scenario) -> int:
    """Return how many first steps of each worker do not count."""
    mixed = len({worker.device.name for worker in scenario.workers}) > 1
    return _SPLIT_STEPS if mixed and scenario.strategy is Strategy.ALLREDUCE else _WARM_UP_STEPS


def iteration_s(outcome: Outcome, scenario: Scenario) -> float:
    """Return the seconds between two updates of the model while everybody was at work."""
    warm_up = warm_up_steps(scenario)
    steps = [own[warm_up:] for own in outcome.steps.values()]
    begin_s = max(own[0].ended_s for own in steps if own)
    end_s = min(own[-1].ended_s for own in steps if own)
    return iteration_within(outcome, scenario.strategy, begin_s, end_s)


def iteration_within(outcome: Outcome, strategy: Strategy, begin_s: float, end_s: float) -> float:
    """Return the same for a part of a run.

    Raises:
        OutsideWorldError: nobody made two steps in it.
    """
    rates = []
    for own in outcome.steps.values():
        inside = [step for step in own if begin_s <= step.ended_s <= end_s]
        if len(inside) > 1:
            rates.append(_steps_per_s(inside))
    if not rates:
        raise OutsideWorldError("no worker made two steps: the run was too short")
    if strategy is Strategy.ASP_PS:
        return 1 / sum(rates)
    return 1 / (sum(rates) / len(rates))  # all make the same steps


def _steps_per_s(steps: Sequence[Step]) -> float:
    return (len(steps) - 1) / (steps[-1].ended_s - steps[0].ended_s)
