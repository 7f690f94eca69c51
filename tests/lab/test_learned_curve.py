"""Curves of losses, and what a law says of them, against closed forms."""

import math
from pathlib import Path

import pytest

from lab.learned_curve import BIN_STEPS, Curve, Point, predicted_steps
from lab.loss_law import write_log
from spotwright.adapters.measurements.loss_log import read_loss_log
from spotwright.domain.errors import UnreachableTargetError

BATCH = 64


def hyperbola(workers: int, *, exponent: float, steps: int = 1200) -> list[Point]:
    return [(s, 600 / (s / workers**exponent + 300) + 0.3) for s in range(3, steps, 3)]


def steps_of_hyperbola(loss: float, workers: int, exponent: float) -> float:
    return (600 / (loss - 0.3) - 300) * workers**exponent


def test_a_curve_is_read_between_means_of_bins() -> None:
    straight = Curve([(step, 3 - step / 1000) for step in range(1, 2000)])

    assert straight.loss_at(777) == pytest.approx(3 - 0.777, abs=1e-3)
    assert straight.steps_to(2.0) == pytest.approx(1000, abs=1)
    assert straight.steps_to(0.5) == math.inf


def test_a_single_look_does_not_decide_when_a_loss_is_reached() -> None:
    lucky = [(s, 0.9 if s == 2 * BIN_STEPS else 2.0 if s < 500 else 1.0) for s in range(0, 600, 5)]

    assert 500 - BIN_STEPS < Curve(lucky).steps_to(1.2) < 500 + BIN_STEPS


def test_the_order_of_looks_does_not_matter() -> None:
    points = hyperbola(4, exponent=0.2)

    assert Curve(points[::-1]).steps_to(1.0) == Curve(points).steps_to(1.0)


@pytest.mark.parametrize("exponent", [0.0, 0.1, 0.5])
def test_eight_workers_are_predicted_from_two_and_four(tmp_path: Path, exponent: float) -> None:
    log = tmp_path / "log.csv"
    write_log(log, {n: [hyperbola(n, exponent=exponent)] * 2 for n in (2, 4)})
    rows = read_loss_log(log, asynchronous=True)

    found = predicted_steps(rows, law="cynthia", loss=0.8, workers=8, batch=BATCH)

    assert found == pytest.approx(steps_of_hyperbola(0.8, 8, exponent), rel=0.01)
    seen = Curve(hyperbola(8, exponent=exponent, steps=4000)).steps_to(0.8)
    assert seen == pytest.approx(found, rel=0.01)


def test_a_loss_below_the_floor_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    write_log(log, {n: [hyperbola(n, exponent=0.1)] for n in (2, 4)})

    with pytest.raises(UnreachableTargetError):
        predicted_steps(
            read_loss_log(log, asynchronous=True), law="cynthia", loss=0.2, workers=8, batch=BATCH
        )
