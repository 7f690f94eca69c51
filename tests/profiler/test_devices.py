"""Devices by name, and batches on them."""

from collections import namedtuple

import pytest
import torch

from spotwright.domain.errors import BadInputError
from spotwright.profiler.devices import HOST, open_device, tensors_of

Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize("name", ["tpu", "cuda:x", "", "cpu:1"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="--device is auto, cpu, cuda or cuda:N"):
        open_device(name)


def test_a_gpu_that_is_not_there_is_told() -> None:
    with pytest.raises(BadInputError, match=r"--device cuda:99: torch sees \d+ CUDA devices here"):
        open_device("cuda:99")


def test_a_batch_keeps_its_shape_when_it_moves() -> None:
    tensor = torch.ones(2)
    batch = {"a": [tensor, ("text", tensor)], "b": Pair(tensor, 3)}

    assert HOST.moved(batch) == batch
    assert isinstance(HOST.moved(batch)["b"], Pair)
    assert len(tensors_of(batch)) == 3
