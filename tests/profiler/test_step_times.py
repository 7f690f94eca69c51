"""Step times of emulated steps."""

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spotwright.domain.errors import BadInputError, MemoryDoesNotFitError
from spotwright.profiler.step_times import StepTimes, measure_step_times
from spotwright.profiler.training import Trainee
from tests.profiler.subjects import WIDTH, HandClock, nothing, summed, taking, trainee

BATCHES = (4, 8, 12)


def _measured(trained: Trainee, clock: Callable[[], float], seconds: float = 5.0) -> StepTimes:
    return measure_step_times(
        trained, batches=BATCHES, seconds=seconds, clock=clock, progress=nothing
    )


def test_an_emulated_step_time_is_recovered() -> None:
    clock = HandClock()

    times = _measured(trainee(loss=taking(clock, lambda b: 0.01 + 0.002 * b)), clock)

    assert times.law.fixed_s.mid == pytest.approx(0.01, rel=1e-3)
    assert times.law.per_sample_s.mid == pytest.approx(0.002, rel=1e-3)
    assert times.medians_s == pytest.approx({4: 0.018, 8: 0.026, 12: 0.034})
    assert times.round_count >= 5


def test_a_real_sleep_for_each_sample_is_recovered() -> None:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        time.sleep(0.004 * len(batch))
        return summed(model, batch)

    times = _measured(trainee(loss=loss), time.perf_counter, seconds=3.0)

    assert times.law.per_sample_s.mid == pytest.approx(0.004, rel=0.25)  # a busy machine oversleeps


def test_a_step_in_seven_that_is_disturbed_moves_nothing() -> None:
    clock, steps = HandClock(), iter(range(100_000))

    def seconds(batch: int) -> float:
        return (0.01 + 0.002 * batch) * (5.0 if next(steps) % 7 == 3 else 1.0)

    times = _measured(trainee(loss=taking(clock, seconds)), clock, seconds=20.0)

    assert times.law.per_sample_s.mid == pytest.approx(0.002, rel=0.02)


@pytest.mark.parametrize(("slow_from_s", "slowness"), [(2.5, 1.5), (7.5, 1.0)])
def test_a_change_of_pace_meets_every_batch_alike(slow_from_s: float, slowness: float) -> None:
    clock = HandClock()

    def seconds(batch: int) -> float:
        return (0.01 + 0.002 * batch) * (1.5 if clock.now_s > slow_from_s else 1.0)

    times = _measured(trainee(loss=taking(clock, seconds)), clock, seconds=10.0)

    shares = [times.medians_s[b] / (0.01 + 0.002 * b) for b in BATCHES]
    assert shares == pytest.approx([slowness] * 3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_names_the_batch(value: float) -> None:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return 0.0 * summed(model, batch) + (value if len(batch) == 8 else 1.0)

    with pytest.raises(BadInputError, match=f"loss of it at a batch of 8 is {value}"):
        _measured(trainee(loss=loss), time.perf_counter)


def test_steps_too_long_for_the_seconds_say_what_to_change() -> None:
    clock = HandClock()

    with pytest.raises(BadInputError, match=r"take 72 s \(10 s at a batch of 12\), and 5 s are"):
        _measured(trainee(loss=taking(clock, lambda b: 4.0 + b / 2)), clock)


def test_running_out_of_memory_says_the_batch_and_the_figure() -> None:
    trained = trainee(batch=lambda size: torch.empty(10**13 if size == 8 else size, WIDTH))

    with pytest.raises(MemoryDoesNotFitError, match=r"a batch of 8 needs 149011\.6 GiB on the CPU"):
        _measured(trained, time.perf_counter)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [({"loss": lambda _m, _b: 0.5}, "gave float; return a tensor"),
     ({"loss": lambda m, b: m(b)}, r"gave \(4, 1\); return a tensor"),
     ({"loss": lambda _m, b: b.sum()}, "does not depend on the model"),
     ({"loss": lambda _m, b: b.nonsense}, "failed: AttributeError"),
     ({"batch": lambda _size: ["text"]}, r"batch\(4\) of it gave a list without any tensor"),
     ({"batch": lambda size: 1 / (size - 4)}, r"batch\(4\) of it failed: ZeroDivisionError")],
)  # fmt: skip
def test_what_cannot_be_trained_is_told(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        _measured(trainee(**given), time.perf_counter)
