"""Step time against batch: rounds over all batches in turn, so that drift meets each alike.

A round takes some steps of every batch, in an order that turns with the round, and keeps the median
of each. What disturbs a few steps disturbs no median, and a machine that slows down half-way slows
down every batch.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spotwright.domain.errors import BadInputError
from spotwright.perfmodel.laws.affine_law import AffineLaw, fit_affine
from spotwright.profiler.training import Clock, Trainee

_WARM_STEPS = 2
_LEAST_ROUNDS, _MOST_ROUNDS = 3, 40
_MOST_STEPS = 15  # of one batch in a round
_ROUNDS_WANTED = 8
_PATIENCE = 3.0  # how many times the seconds allowed are taken rather than told too short

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Medians by batch, and the line through them."""

    rows: tuple[tuple[int, float], ...]  # batch and median of each round, as they were measured
    medians_s: dict[int, float]
    law: AffineLaw
    round_count: int
    step_count: int


def measure_step_times(
    trainee: Trainee, *, batches: Sequence[int], seconds: float, clock: Clock, progress: Progress
) -> StepTimes:
    """Time steps for so many seconds.

    Raises:
        BadInputError: that is not enough for three rounds, or a loss is not finite.
        MemoryDoesNotFitError: at the batch it says.
    """
    made = {b: trainee.device.moved(trainee.batch(b)) for b in sorted(set(batches))}
    start_s = clock()
    one_step_s = {batch: _warm(trainee, made[batch], batch, clock) for batch in made}
    steps = _steps_per_round(one_step_s, seconds)
    rows: list[tuple[int, float]] = []
    for number in range(_MOST_ROUNDS):
        elapsed_s = clock() - start_s
        if number >= _LEAST_ROUNDS and elapsed_s >= seconds:
            break
        progress(min(elapsed_s / seconds, 1.0))
        rows += _round(trainee, made, steps, number, clock)
    return _fitted(rows, steps)


def _warm(trainee: Trainee, batch: Any, size: int, clock: Clock) -> float:
    return min(trainee.timed_step(batch, size=size, clock=clock) for _ in range(_WARM_STEPS))


def _steps_per_round(one_step_s: dict[int, float], seconds: float) -> dict[int, int]:
    """Give each batch the same share of a round, and at least one step."""
    least_s = _LEAST_ROUNDS * sum(one_step_s.values())
    if least_s > _PATIENCE * seconds:
        largest = max(one_step_s)
        raise BadInputError(
            f"{_LEAST_ROUNDS} steps of each batch take {least_s:.0f} s ({one_step_s[largest]:.2g} "
            f"s at a batch of {largest}), and {seconds:.0f} s are left for them; give smaller "
            "--batches or more --seconds"
        )
    share_s = seconds / _ROUNDS_WANTED / len(one_step_s)
    return {b: max(1, min(_MOST_STEPS, int(share_s / s))) for b, s in one_step_s.items()}


def _round(
    trainee: Trainee, made: dict[int, Any], steps: dict[int, int], number: int, clock: Clock
) -> list[tuple[int, float]]:
    order = sorted(made)
    first = number % len(order)
    rows = []
    for size in order[first:] + order[:first]:
        timed = [trainee.timed_step(made[size], size=size, clock=clock) for _ in range(steps[size])]
        rows.append((size, statistics.median(timed)))
    return rows


def _fitted(rows: list[tuple[int, float]], steps: dict[int, int]) -> StepTimes:
    by_batch = {size: [s for b, s in rows if b == size] for size in steps}
    rounds = len(rows) // len(steps)
    return StepTimes(
        rows=tuple(rows),
        medians_s={size: statistics.median(times) for size, times in by_batch.items()},
        law=fit_affine(rows),
        round_count=rounds,
        step_count=rounds * sum(steps.values()),
    )
