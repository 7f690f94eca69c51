"""Input stalls of datasets that take a known time."""

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from spotwright.domain.errors import BadInputError
from spotwright.profiler import page_cache
from spotwright.profiler.loading import InputStalls, measure_input
from spotwright.profiler.training import Trainee
from tests.profiler.subjects import WIDTH, HandClock, nothing, taking, trainee

BATCH, COUNT = 8, 64
PREP_S, FETCH_S, STEP_S = 0.005, 0.02, 0.1
PAGE_BYTES = 1 << 20  # of a sample: further than the kernel reads ahead


class SlowSamples:
    """Takes time to prepare a sample, and more where it is not in the page cache."""

    def __init__(self, clock: HandClock, file: Path | None = None) -> None:
        self._clock, self._file = clock, file

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Tensor:
        self._clock.take(PREP_S + (FETCH_S if self._file and self._is_cold(index) else 0.0))
        return torch.ones(WIDTH)

    def _is_cold(self, index: int) -> bool:
        assert self._file is not None
        with self._file.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            try:
                os.preadv(file.fileno(), [bytearray(1)], index * PAGE_BYTES, os.RWF_NOWAIT)
            except BlockingIOError:
                os.pread(file.fileno(), 1, index * PAGE_BYTES)
                return True
        return False


def _stalls(trained: Trainee, clock: HandClock, *, batch: int = BATCH) -> InputStalls:
    return measure_input(
        trained, batch=batch, processes=0, seconds=60.0, clock=clock, progress=nothing
    )


def _trainee(clock: HandClock, **given: object) -> Trainee:
    return trainee(nn.Linear(WIDTH, 1), loss=taking(clock, lambda _batch: STEP_S), **given)


def test_the_prep_stall_is_what_the_dataset_takes() -> None:
    clock = HandClock()

    stalls = _stalls(_trainee(clock, dataset=SlowSamples(clock)), clock)

    assert stalls.prep_stall_s.mid == pytest.approx(BATCH * PREP_S)
    assert stalls.prepared_samples_per_s == pytest.approx(1 / PREP_S)
    assert stalls.synthetic_samples_per_s == pytest.approx(BATCH / STEP_S)
    assert (stalls.fetch_stall_s, stalls.fetched_samples_per_s) == (None, None)
    assert stalls.sample_count == COUNT


def test_the_fetch_stall_is_what_the_disk_adds(tmp_path: Path) -> None:
    clock, path = HandClock(), tmp_path / "data"
    path.write_bytes(bytes(COUNT * PAGE_BYTES))
    page_cache.drop([path])
    has_disk = page_cache.cached_fraction((path,)) == 0.0

    stalls = _stalls(_trainee(clock, dataset=SlowSamples(clock, path), files=(path,)), clock)

    assert stalls.prep_stall_s.mid == pytest.approx(BATCH * PREP_S)
    assert stalls.dataset_bytes == COUNT * PAGE_BYTES
    if has_disk:
        assert stalls.fetch_stall_s
        # A kernel that is busy writing may keep some pages that it was told to drop.
        assert 0 < stalls.fetch_stall_s.mid <= BATCH * FETCH_S * 1.000001
        assert stalls.fetched_samples_per_s
        assert 0.999999 / (PREP_S + FETCH_S) <= stalls.fetched_samples_per_s < 1 / PREP_S
    else:  # temporary files that live in memory: said, not guessed
        assert (stalls.fetch_stall_s, stalls.left_cached_fraction) == (None, 1.0)


def test_a_dataset_smaller_than_a_batch_is_refused() -> None:
    clock = HandClock()

    with pytest.raises(BadInputError, match="has 64 samples, fewer than a batch of 65"):
        _stalls(_trainee(clock, dataset=SlowSamples(clock)), clock, batch=65)


def test_a_dataset_that_fails_is_told() -> None:
    clock = HandClock()

    class Broken(SlowSamples):
        def __getitem__(self, index: int) -> Tensor:
            raise OSError("no such shard")

    with pytest.raises(BadInputError, match="the dataset of it failed: OSError: no such shard"):
        _stalls(_trainee(clock, dataset=Broken(clock)), clock)


def test_collate_makes_the_batches() -> None:
    clock, seen = HandClock(), []

    def collate(samples: list[Tensor]) -> Tensor:
        seen.append(len(samples))
        return torch.stack(samples)

    _stalls(_trainee(clock, dataset=SlowSamples(clock), collate=collate), clock)

    assert set(seen) == {BATCH}
