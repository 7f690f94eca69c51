"""What is kept for the backward pass, against counts by hand."""

from dataclasses import replace

import pytest
from torch import nn

from spotwright.domain.errors import MemoryDoesNotFitError
from spotwright.profiler.memory import check_room, measure_memory
from spotwright.profiler.sizes import measure_sizes
from tests.profiler.subjects import WIDTH, trainee


def _layers() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 1))


def test_saved_tensors_grow_with_the_batch_as_counted_by_hand() -> None:
    memory = measure_memory(trainee(_layers()), batches=(2, 4, 8))

    # The inputs, and the output of the ReLU, which the ReLU and the second layer share.
    assert memory.bytes_per_sample == pytest.approx(4 * (WIDTH + 8))
    assert memory.fixed_bytes == pytest.approx(0.0, abs=1e-6)
    assert memory.source == "saved tensors"


def test_a_batch_beyond_the_free_memory_is_refused_before_it_runs() -> None:
    trained = trainee(_layers())
    sizes = measure_sizes(trained, batch=2)
    memory = replace(measure_memory(trained, batches=(2, 4)), bytes_per_sample=2.0**40)

    with pytest.raises(MemoryDoesNotFitError, match=r"a batch of 64 needs 65536\.0 GiB on the CPU"):
        check_room(trained, sizes, memory, batch=64)

    check_room(trained, sizes, measure_memory(trained, batches=(2, 4)), batch=64)
