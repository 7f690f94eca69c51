"""Bytes and operations, against counts by hand."""

import pytest
import torch
from torch import nn

from spotwright.domain.errors import BadInputError
from spotwright.domain.hardware import Precision
from spotwright.profiler.sizes import Sizes, measure_sizes
from tests.profiler.subjects import WIDTH, summed, trainee


def _sizes(model: nn.Module, **given: object) -> Sizes:
    return measure_sizes(trainee(model, **given), batch=2)


def test_a_linear_layer_is_counted_as_by_hand() -> None:
    sizes = _sizes(nn.Linear(WIDTH, 3))

    assert sizes.parameter_count == 4 * 3 + 3
    assert sizes.parameter_bytes == sizes.gradient_bytes == 60
    assert sizes.tensor_count == 2
    assert sizes.flops_per_sample == 2 * (2 * 4 * 3)  # forward, gradient of the weights
    assert sizes.input_bytes_per_sample == 16
    assert sizes.precision is Precision.FP32


def test_a_second_layer_also_passes_gradients_back() -> None:
    sizes = _sizes(nn.Sequential(nn.Linear(WIDTH, 3, bias=False), nn.Linear(3, 5, bias=False)))

    assert sizes.flops_per_sample == 2 * (2 * 4 * 3) + 3 * (2 * 3 * 5)


def test_a_convolution_is_counted_as_by_hand() -> None:
    convolution = nn.Conv2d(3, 7, 5, padding=2, bias=False)

    sizes = _sizes(convolution, batch=lambda size: torch.ones(size, 3, 11, 13))

    assert sizes.parameter_bytes == 4 * 3 * 7 * 25
    assert sizes.flops_per_sample == 2 * (2 * 3 * 25 * 7 * 11 * 13)


def test_a_frozen_layer_is_held_and_not_exchanged() -> None:
    model = nn.Sequential(nn.Linear(WIDTH, 3, bias=False), nn.Linear(3, 5, bias=False))
    model[0].requires_grad_(False)

    sizes = _sizes(model)

    assert (sizes.parameter_bytes, sizes.gradient_bytes, sizes.tensor_count) == (108, 60, 1)


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_parameter"),
    [(lambda p: torch.optim.SGD(p, lr=0.1), 0), (torch.optim.Adam, 8),
     (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 4)],
)  # fmt: skip
def test_optimiser_state_is_measured(optimizer: object, bytes_per_parameter: float) -> None:
    model = nn.Linear(WIDTH, 3)
    assert callable(optimizer)

    sizes = _sizes(model, optimizer=optimizer(model.parameters()))

    assert sizes.optimizer_bytes_per_parameter == bytes_per_parameter


def test_half_precision_is_seen() -> None:
    model = nn.Linear(WIDTH, 3, dtype=torch.bfloat16)

    sizes = _sizes(model, batch=lambda size: torch.ones(size, WIDTH, dtype=torch.bfloat16))

    assert (sizes.precision, sizes.gradient_bytes) == (Precision.BF16, 30)


def test_a_model_without_countable_operations_is_refused() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.ones(WIDTH))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs * self.by

    with pytest.raises(BadInputError, match="no FLOPs were counted"):
        _sizes(Scale(), loss=summed)
