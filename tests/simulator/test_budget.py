from dataclasses import replace

import pytest

from spotwright.simulator.market import MarketTrace
from tests.simulator.small_market import hours, job_of, market_of, spot
from tests.simulator.steered import scene_of, steered


@pytest.mark.parametrize(("budget_usd", "is_done"), [(12.0, True), (10.15, False)])
def test_a_run_ends_before_it_costs_more_than_its_budget(budget_usd: float, is_done: bool) -> None:
    # Ten hours at $1, until the price doubles for the second half.
    market = MarketTrace(prices={spot(): hours((0, 1.0), (8, 1.0 if is_done else 2.0))})
    job = job_of(deadline_hours=40)
    job = replace(job, goal=replace(job.goal, budget_usd=budget_usd))

    found = steered(scene_of(job, market_of(), market), market_of())

    assert (found.finish_s is not None) is is_done
    assert 9.5 < found.cost_usd <= budget_usd
