"""Input stalls by difference: the same steps on made-up data, on cached data and on cold data.

    G  samples/s of steps on synthetic batches that are on the device
    P  samples/s that one process prepares from a warm page cache, without training
    F  samples/s that it reads and prepares from a cold one
    prep stall   what a step on warm data takes beside its training
    fetch stall  the same on cold data - on warm data

The first stall is a difference within each pass, because steps vary from pass to pass by more than
a stall. Rounds take the three kinds of passes in turn; figures are medians over rounds, and each
pass reads a sample once. A dataset that reads no files has no fetch stall.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch.utils.data import DataLoader, Subset

from spotwright.domain.errors import BadInputError
from spotwright.domain.prediction import Interval
from spotwright.profiler import page_cache
from spotwright.profiler.find import telling_failures
from spotwright.profiler.step_times import Progress
from spotwright.profiler.training import Clock, Trainee

_ROUNDS, _LEAST_ROUNDS = 7, 3
_MOST_BATCHES = 12  # of a pass
_WARM_FRACTION = 0.1  # of pages left after dropping them: more is no cold cache


@dataclass(frozen=True, slots=True, kw_only=True)
class InputStalls:
    """What feeding costs a step of this host. Intervals are the range of rounds."""

    synthetic_samples_per_s: float  # G
    prepared_samples_per_s: float  # P
    fetched_samples_per_s: float | None  # F; None: nothing is read, or the cache cannot be emptied
    prep_stall_s: Interval
    fetch_stall_s: Interval | None
    loader_processes: int
    sample_count: int  # of the whole dataset
    dataset_bytes: float | None
    left_cached_fraction: float | None  # of the files after dropping them; None: no files


@dataclass(frozen=True, slots=True)
class _Pass:
    """Means over the steps of a pass, and the loader's time for a step alone."""

    step_s: float
    wait_s: float = 0.0  # of it, beside training
    load_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Round:
    synthetic: _Pass
    warm: _Pass
    cold: _Pass | None


class InputProbe:
    """Passes over a part of the dataset."""

    def __init__(self, trainee: Trainee, *, batch: int, processes: int, clock: Clock) -> None:
        """Prepare passes of so many samples a step."""
        self._trainee, self._batch, self._clock = trainee, batch, clock
        self._processes = processes
        self._order = torch.randperm(len(trainee.subject.dataset)).tolist()
        if len(self._order) < batch:
            raise BadInputError(
                f"the dataset of {trainee.subject.name} has {len(self._order)} samples, fewer than "
                f"a batch of {batch}; give a smaller --batch, or more data"
            )
        self._steps = min(_MOST_BATCHES, len(self._order) // batch)

    def shorten(self, seconds: float) -> None:
        """Let a pass take about so many seconds."""
        whole, self._steps = self._steps, 1
        one_s = self._train().step_s
        self._steps = max(1, min(whole, int(seconds / one_s)))

    def round(self, *, with_cold: bool) -> _Round:
        """Make each kind of pass once; the cold one first, for it warms what the next reads."""
        cold = self._real(cold=True) if with_cold else None
        return _Round(self._synthetic(), self._real(cold=False), cold)

    def _synthetic(self) -> _Pass:
        made = self._trainee.device.moved(self._trainee.batch(self._batch))
        return _Pass(statistics.fmean(self._step(made) for _ in range(self._steps)))

    def _real(self, *, cold: bool) -> _Pass:
        files = self._trainee.subject.files if cold else ()
        page_cache.drop(files)
        trained = self._train()
        page_cache.drop(files)
        return replace(trained, load_s=self._load_s())

    def _train(self) -> _Pass:
        batches, busy_s = self._loaded(self._processes), 0.0
        first = [next(batches)] if self._processes else []  # without the start of processes
        start_s = self._clock()
        for made in chain(first, batches):
            busy_s += self._step(self._trainee.device.moved(made))
        elapsed_s = self._clock() - start_s
        return _Pass(elapsed_s / self._steps, max(elapsed_s - busy_s, 0.0) / self._steps)

    def _load_s(self) -> float:
        """Load in this process, with one thread, as a loader's process does."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            start_s = self._clock()
            count = sum(1 for _ in self._loaded(0))
            return (self._clock() - start_s) / count
        finally:
            torch.set_num_threads(threads)

    def _step(self, made: Any) -> float:
        return self._trainee.timed_step(made, size=self._batch, clock=self._clock)

    def _loaded(self, processes: int) -> Iterator[Any]:
        subject = self._trainee.subject
        batches = DataLoader(
            Subset(subject.dataset, self._order[: self._steps * self._batch]),
            batch_size=self._batch,
            num_workers=processes,
            collate_fn=subject.collate,
        )
        with telling_failures(f"the dataset of {subject.name}"):
            yield from batches


def measure_input(
    trainee: Trainee,
    *,
    batch: int,
    processes: int,
    seconds: float,
    clock: Clock,
    progress: Progress,
) -> InputStalls:
    """Measure stalls for about so many seconds.

    Raises:
        BadInputError: the dataset fails, or has less than a batch.
    """
    probe = InputProbe(trainee, batch=batch, processes=processes, clock=clock)
    left = _left_cached(trainee)
    is_cold = left is not None and left <= _WARM_FRACTION
    probe.shorten(seconds / _ROUNDS / (5 if is_cold else 3))
    rounds: list[_Round] = []
    start_s = clock()
    while len(rounds) < _LEAST_ROUNDS or (len(rounds) < _ROUNDS and clock() - start_s < seconds):
        progress(min((clock() - start_s) / seconds, 1.0))
        rounds.append(probe.round(with_cold=is_cold))
    return _stalls(trainee, rounds, batch=batch, processes=processes, left=left)


def _left_cached(trainee: Trainee) -> float | None:
    files = trainee.subject.files
    if not files:
        return None
    page_cache.drop(files)
    return page_cache.cached_fraction(files)


def _stalls(
    trainee: Trainee, rounds: list[_Round], *, batch: int, processes: int, left: float | None
) -> InputStalls:
    cold = [one.cold for one in rounds if one.cold]
    subject = trainee.subject
    return InputStalls(
        synthetic_samples_per_s=batch / statistics.median(one.synthetic.step_s for one in rounds),
        prepared_samples_per_s=batch / statistics.median(one.warm.load_s for one in rounds),
        fetched_samples_per_s=batch / statistics.median(c.load_s for c in cold) if cold else None,
        prep_stall_s=_range([one.warm.wait_s for one in rounds]),
        fetch_stall_s=(
            _range([one.cold.wait_s - one.warm.wait_s for one in rounds if one.cold])
            if cold
            else None
        ),
        loader_processes=processes,
        sample_count=len(subject.dataset),
        dataset_bytes=float(sum(f.stat().st_size for f in subject.files)) or None,
        left_cached_fraction=left,
    )


def _range(values: list[float]) -> Interval:
    """Return the median with the least and the largest; a stall is never less than nothing."""
    kept = [max(value, 0.0) for value in values]
    return Interval(min(kept), statistics.median(kept), max(kept))
