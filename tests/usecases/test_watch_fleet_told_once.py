from dataclasses import replace

import pytest

from spotwright.domain.job import Goal, Target, TargetKind
from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import JobView, Trigger
from spotwright.usecases.steering_memory import SteeringMemory
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.watch_fleet import watch_fleet

POOL = Pool("g5.xlarge", "use1-az4", Market.SPOT)
GOAL = Goal(target=Target(kind=TargetKind.STEPS, value=100))
RULES = SteeringRules()
NOTHING_CAME = JobView(time_s=0.0, done_fraction=0.0, spent_usd=0.0, nodes=(), asked={POOL: 2})
SLOW = replace(NOTHING_CAME, asked={}, pace_factor=0.5)


def told(view: JobView, *, for_s: int) -> tuple[list[Trigger], SteeringMemory]:
    """Look every 5 s, and return what was told."""
    memory = SteeringMemory()
    found: list[Trigger] = []
    for time_s in range(0, for_s, 5):
        view = replace(view, time_s=float(time_s))
        watched = watch_fleet(view, memory, goal=GOAL, rules=RULES, spot_pools={POOL})
        memory = watched.memory
        found += watched.triggers
    return found, memory


def test_a_pool_that_grants_nothing_fails_once_until_it_has_cooled_down() -> None:
    timeout_s, pause_s = int(RULES.grant_timeout_s), int(RULES.first_cool_down_s)

    found, memory = told(NOTHING_CAME, for_s=timeout_s + pause_s)
    _, later = told(NOTHING_CAME, for_s=2 * timeout_s + pause_s + 100)

    assert found.count(Trigger.SHORT_GRANT) == (timeout_s + pause_s) // timeout_s - 1
    assert memory.failures[POOL][0] == 1
    assert later.failures[POOL][0] == 2


def test_a_pool_that_refuses_for_hours_counts_as_one_loss() -> None:
    _, memory = told(NOTHING_CAME, for_s=4 * 3600)

    assert memory.failures[POOL][0] > 3
    assert memory.weather[POOL].losses == 1


@pytest.mark.parametrize("lasts", [1, 3])
def test_drift_that_lasts_is_told_once_in_each_period(lasts: int) -> None:
    found, _ = told(SLOW, for_s=lasts * int(RULES.drift_after_s) + 100)

    assert found.count(Trigger.DRIFT) == lasts
