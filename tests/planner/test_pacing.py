"""Oracles: drawn markets with rival policies on the same draws, and cases with one right answer."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from spotwright.planner.pacing import Market, Mode, Pace, Pacing, Standing

STEP = 0.05
MARGIN = 2 * STEP
WAIT, SPOT = Pace(speed=0.0, price=0.0), Pace(speed=1.0, price=0.3)
MARKET = Market(losses_per_hour=0.4, returns_per_hour=0.6, restart_hours=0.2)
Policy = Callable[[Standing], Mode]


def pacing(
    *, wait: Pace = WAIT, spot: Pace = SPOT, market: Market = MARKET, hours: float = 24.0
) -> Pacing:
    return Pacing(wait=wait, spot=spot, market=market, longest_hours=hours)


def standing(hours: float, work: float, mode: Mode = Mode.WAIT, *, there: bool = False) -> Standing:
    return Standing(hours_left=hours, work_hours=work, mode=mode, spot_is_there=there)


def cost(policy: Policy, market: Market, *, hours: float, work: float, seed: int) -> float:
    """Return what a policy pays in one drawn market; infinite where it is late."""
    draws = np.random.default_rng(seed)
    lost = 1 - math.exp(-market.losses_per_hour * STEP)
    back = 1 - math.exp(-market.returns_per_hour * STEP)
    there, mode, paid, restart = True, Mode.WAIT, 0.0, 0.0
    prices = {Mode.WAIT: WAIT.price, Mode.SPOT: SPOT.price, Mode.SURE: 1.0}
    for step in range(round(hours / STEP)):
        there = draws.random() >= lost if there else draws.random() < back
        if mode is Mode.SPOT and not there:
            mode, restart = Mode.WAIT, 0.0
        wanted = policy(standing(hours - step * STEP, work + restart, mode, there=there))
        if wanted is not mode and wanted is not Mode.WAIT:
            restart = market.restart_hours
        mode = wanted
        starting = min(restart, STEP)
        restart -= starting
        paid += prices[mode] * STEP
        work -= 0.0 if mode is Mode.WAIT else STEP - starting
        if work <= 1e-9:
            return paid
    return math.inf


def paced(program: Pacing) -> Policy:
    def policy(now: Standing) -> Mode:
        spare = now.hours_left - now.work_hours - MARGIN  # of which entering takes its part
        if now.mode is not Mode.SURE and spare <= MARKET.restart_hours:
            return Mode.SURE
        if now.mode is Mode.SURE and spare <= 2 * MARKET.restart_hours:
            return Mode.SURE
        return program.best(now)

    return policy


def greedy(now: Standing) -> Mode:
    """Wait for spot capacity until there is no time left; then never again."""
    if now.mode is Mode.SURE:
        return Mode.SURE
    if now.hours_left <= now.work_hours + MARKET.restart_hours + MARGIN:
        return Mode.SURE
    return Mode.SPOT if now.spot_is_there else Mode.WAIT


def uniform(hours: float, work: float) -> Policy:
    """Follow the straight line from the start to the deadline."""

    def policy(now: Standing) -> Mode:
        done, passed = work - now.work_hours, hours - now.hours_left
        restart = MARKET.restart_hours
        ahead = done >= (passed + 2 * restart) * work / hours
        if now.mode is Mode.SURE:
            tight = now.hours_left <= now.work_hours + 2 * restart + MARGIN
            stays = tight or not ahead or not now.spot_is_there
            return Mode.SURE if stays else Mode.SPOT
        if now.hours_left <= now.work_hours + restart + MARGIN:
            return Mode.SURE
        if now.spot_is_there:
            return Mode.SPOT
        return Mode.SURE if done < passed * work / hours else Mode.WAIT

    return policy


@pytest.mark.parametrize(("hours", "work"), [(12.0, 10.5), (12.0, 8.0), (18.0, 10.0)])
def test_it_is_cheaper_than_greedy_and_uniform_progress_and_never_late(
    hours: float, work: float
) -> None:
    ours = paced(pacing(hours=hours))
    runs = range(150)

    def paid(policy: Policy) -> list[float]:
        return [cost(policy, MARKET, hours=hours, work=work, seed=seed) for seed in runs]

    mine = paid(ours)

    assert all(math.isfinite(each) for each in mine)
    assert np.mean(mine) < np.mean(paid(greedy))
    assert np.mean(mine) < np.mean(paid(uniform(hours, work)))


def test_cheap_spot_capacity_that_is_there_is_used() -> None:
    assert pacing().best(standing(20, 10, there=True)) is Mode.SPOT
    assert pacing().best(standing(20, 10, Mode.SPOT, there=True)) is Mode.SPOT


def test_dear_spot_capacity_is_not_used() -> None:
    dear = pacing(spot=Pace(speed=1.0, price=1.2))
    assert dear.best(standing(12, 10, Mode.SURE, there=True)) is Mode.SURE


def test_capacity_that_is_back_in_minutes_is_waited_for() -> None:
    quick = replace(MARKET, returns_per_hour=20.0)
    assert pacing(market=quick).best(standing(20, 10)) is Mode.WAIT


def test_a_decision_holds_until_the_time_it_says() -> None:
    program = pacing()
    now = standing(14, 10)
    assert program.best(now) is Mode.WAIT
    hours = program.hours_until_change(now, Mode.WAIT)
    assert 0 < hours < 4
    for share in (0.25, 0.5, 0.75, 0.95):
        before = replace(now, hours_left=now.hours_left - share * hours)
        assert program.best(before) is Mode.WAIT
    after = replace(now, hours_left=now.hours_left - hours)
    assert program.best(after) is Mode.SURE


def test_survivors_that_are_fast_enough_are_kept_alone() -> None:
    fast = pacing(wait=Pace(speed=0.95, price=0.2))
    assert fast.best(standing(14, 10)) is Mode.WAIT
    assert fast.best(standing(10.9, 10)) is Mode.WAIT


def test_rates_and_times_are_not_negative() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        Market(losses_per_hour=-1.0, returns_per_hour=1.0, restart_hours=0.2)
