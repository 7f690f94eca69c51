import random

import pytest

from spotwright.simulator.foresight import OneNodeJob, foresight_usd
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.policies.one_fleet import Greedy, TwoFleets, UniformProgress
from spotwright.simulator.run import simulate
from spotwright.simulator.series import Series
from tests.simulator.small_market import (
    HOUR_S,
    RESTART_S,
    hours,
    job_of,
    market_of,
    on_demand,
    spot,
)
from tests.simulator.steered import scene_of, steered

JOB = OneNodeJob(
    work_hours=10.0,
    deadline_hours=14.0,
    restart_hours=0.2,
    spot_usd_per_hour=1.0,
    on_demand_usd_per_hour=3.0,
)
FLEETS = TwoFleets(
    spot={spot(): 1},
    sure={on_demand(): 1},
    sure_s=10 * HOUR_S,
    deadline_s=14 * HOUR_S,
    restart_s=RESTART_S,
)


@pytest.mark.parametrize(
    ("points", "cost_usd"),
    [
        ([(0, 1)], 10.2),
        ([(0, 0)], 30.6),
        ([(0, 0), (3, 1)], 10.2),  # there is time to wait
        ([(0, 1), (5, 0), (6, 1)], 10.4),  # a second start
        ([(0, 0), (7, 1)], 3 * (3.2 + 0.2) + 6.8 + 0.2),  # 3.2 h on demand, 6.8 h on spot
    ],
)
def test_foresight_costs_what_can_be_worked_out_by_hand(
    points: list[tuple[float, float]], cost_usd: float
) -> None:
    found = foresight_usd({spot(): hours(*points)}, JOB)

    assert found == pytest.approx(cost_usd, abs=0.16)  # a step of 0.05 h on demand


@pytest.mark.parametrize("seed", range(4))
def test_no_policy_beats_foresight_and_none_of_them_is_late(seed: int) -> None:
    market = MarketTrace(capacity={spot(): _flickering(seed)})
    scene = scene_of(job_of(), market_of(), market)
    bound_usd = foresight_usd(market.capacity, JOB)

    runs = [simulate(scene, Greedy(FLEETS)), simulate(scene, UniformProgress(FLEETS))]
    runs.append(steered(scene, market_of()))

    assert not any(run.is_late for run in runs)
    assert min(run.cost_usd for run in runs) >= bound_usd - 0.15


def _flickering(seed: int) -> Series:
    drawn, hour = random.Random(seed), 0.0
    points: list[tuple[float, float]] = []
    while hour < 30:
        points.append((hour, float(len(points) % 2)))
        hour += drawn.expovariate(1.0)
    return hours(*points)
