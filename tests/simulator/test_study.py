import math
from dataclasses import replace
from itertools import chain

import pytest

from spotwright.adapters.sweeps.process_pool import ProcessPool
from spotwright.adapters.traces.bundled import bundled_campaigns
from spotwright.domain.plan import Objective
from spotwright.perfmodel.predict import predict
from spotwright.simulator.draw import AtPrices, DrawnCampaigns, DrawnHazards, TracedWindows
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.study import InThisProcess, run_study
from spotwright.simulator.summary import mean_with_bounds, share_with_bounds, summarised
from spotwright.simulator.two_fleets import two_fleets
from spotwright.usecases.fleet_choices import FleetChoices, Question
from tests.simulator.small_market import hours, job_of, market_of, spot
from tests.simulator.small_study import FLICKERING, small_study


def test_processes_give_what_one_process_gives() -> None:
    policies = [PolicyName.GREEDY, PolicyName.OURS]

    here = run_study(small_study(), policies, runs=3, spread=InThisProcess(), block_runs=2)
    there = run_study(small_study(), policies, runs=3, spread=ProcessPool(2), block_runs=2)

    assert here == there


def test_another_seed_draws_other_windows() -> None:
    one, other = (
        run_study(
            replace(small_study(), draw=TracedWindows(trace=small_study().draw.trace, seed=seed)),  # type: ignore[attr-defined]
            [PolicyName.GREEDY],
            runs=4,
            spread=InThisProcess(),
        )
        for seed in (1, 2)
    )

    assert one != other


def test_rivals_that_search_again_keep_a_long_deadline() -> None:
    study = small_study()

    found = run_study(
        study, [PolicyName.SPOTDNN, PolicyName.HOMOGENEOUS], runs=2, spread=InThisProcess()
    )

    for run in chain(*found.values()):
        assert run.done_fraction == pytest.approx(1.0)
        assert run.deadline_s == study.fleets.deadline_s
        assert run.finish_s is not None
        assert run.finish_s <= study.fleets.deadline_s
        assert not run.is_late


def test_wilson_bounds_are_those_of_the_textbook() -> None:
    low, mid, high = share_with_bounds(0, 300)

    assert low == pytest.approx(0.0, abs=1e-12)
    assert mid == 0.0
    assert high == pytest.approx(0.01264, abs=1e-4)  # 3.8415 / 303.8415


def test_bounds_of_a_mean_are_those_of_the_textbook_and_one_run_has_none() -> None:
    low, mid, high = mean_with_bounds([8.0, 9.0, 13.0])

    assert mid == 10.0
    assert (mid - low, high - mid) == pytest.approx([4.3027 * math.sqrt(7 / 3)] * 2, rel=1e-4)
    assert mean_with_bounds([8.0]) == (-math.inf, 8.0, math.inf)


def test_drawn_hazards_take_nodes_as_often_as_they_say() -> None:
    draw = DrawnHazards(
        hazards_per_hour={spot(): 0.05}, common_fraction=0.5, most_nodes=4, seed=1, away_s=1.0
    )
    markets = [draw.market(run, 100 * 3600.0, notice_s=0.0) for run in range(60)]

    strikes = sum(len(market.strikes[spot()]) for market in markets)
    shocks = sum(market.capacity[spot()].values.count(0.0) for market in markets)

    assert strikes == pytest.approx(0.025 * 4 * 100 * 60, rel=0.15)
    assert shocks == pytest.approx(0.025 * 100 * 60, rel=0.25)


def test_prices_of_a_history_go_with_capacity_of_another_draw() -> None:
    rising = hours(*((float(hour), 1.0 + hour) for hour in range(200)), end=200.0)
    capacity = TracedWindows(trace=MarketTrace(capacity={spot(): FLICKERING}), seed=3)
    draw = AtPrices(draw=capacity, prices={spot(): rising}, seed=5)

    markets = [draw.market(run, 20 * 3600.0, notice_s=0.0) for run in range(40)]

    assert [m.capacity for m in markets] == [
        capacity.market(run, 20 * 3600.0, notice_s=0.0).capacity for run in range(40)
    ]
    first = [m.prices[spot()].values[0] for m in markets]
    assert min(first) < 40
    assert max(first) > 140
    assert all(
        m.prices[spot()].at(10 * 3600.0) in (p + 9, p + 10)
        for m, p in zip(markets, first, strict=True)
    )


@pytest.mark.parametrize("deadline_h", [11.2, 13.0])
@pytest.mark.parametrize("is_probed", [True, False], ids=["told", "not told"])
def test_the_promised_chance_of_the_deadline_is_kept_on_measured_traces(
    deadline_h: float, is_probed: bool
) -> None:
    """The promise is the planner's, from its hazards; the traces know nothing of those."""
    job = job_of(deadline_hours=deadline_h)
    choices = FleetChoices(job, market_of())
    planned = choices.best(Question(deadline_s=deadline_h * 3600.0, objective=Objective.COST))
    assert planned is not None
    promised = predict(job, planned.fleet, market_of().gpu).deadline_probability
    study = small_study()
    study = replace(
        study,
        job=job,
        fleets=two_fleets(choices, planned=planned.workers, servers={}),
        draw=DrawnCampaigns(
            campaigns=tuple(bundled_campaigns()), pools=(spot(),), most_nodes=1, seed=3
        ),
        conditions=replace(study.conditions, is_probed=is_probed),
    )

    outcomes = run_study(study, [PolicyName.OURS], runs=22, spread=InThisProcess())

    kept = 1 - summarised(outcomes[PolicyName.OURS]).miss_fraction.mid
    assert promised is not None
    assert kept >= promised - 0.01
