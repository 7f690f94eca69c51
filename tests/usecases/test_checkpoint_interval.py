"""How often training is told to save its state."""

import math

import pytest

from spotwright.domain.steering import Weather
from spotwright.usecases.advise_checkpoints import checkpoint_interval_s
from tests.usecases.steered_job import OTHER_SPOT, SPOT


@pytest.mark.parametrize("checkpoint_s", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("per_hour", [0.05, 0.5, 3.0])
def test_what_is_planned_gives_the_interval_of_young_and_daly(
    checkpoint_s: float, per_hour: float
) -> None:
    found = checkpoint_interval_s(checkpoint_s, planned_per_hour=per_hour, weather={})

    assert found == pytest.approx(math.sqrt(2 * checkpoint_s / (per_hour / 3600)))


def test_losses_that_were_seen_count_beside_six_hours_of_the_plan() -> None:
    weather = {SPOT: Weather(up_hours=6.0, losses=2), OTHER_SPOT: Weather(up_hours=4.0, losses=1)}
    rate_per_s = (0.5 * 6 + 3) / (6 + 6) / 3600

    found = checkpoint_interval_s(20.0, planned_per_hour=0.5, weather=weather)

    assert found == pytest.approx(math.sqrt(2 * 20.0 / rate_per_s))
