"""Sizes of a model: counted, not measured, so they hold on any hardware.

FLOPs are those of matrix products, convolutions and attention in one forward and backward pass, two
for each multiply-add, as torch's FlopCounterMode counts them; element-wise work is left out.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from spotwright.domain.errors import BadInputError
from spotwright.domain.hardware import Precision
from spotwright.profiler.devices import tensors_of
from spotwright.profiler.training import Trainee

_PRECISIONS = {torch.float16: Precision.FP16, torch.bfloat16: Precision.BF16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What there is of a model."""

    parameter_bytes: int  # all of them
    parameter_count: int
    gradient_bytes: int  # what workers exchange in a step
    tensor_count: int  # of gradients
    buffer_bytes: int
    optimizer_bytes: int  # state after a step
    flops_per_sample: float
    input_bytes_per_sample: float
    precision: Precision

    @property
    def optimizer_bytes_per_parameter(self) -> float:
        """State that the optimiser keeps for each parameter of the model."""
        return self.optimizer_bytes / self.parameter_count


def measure_sizes(trainee: Trainee, *, batch: int) -> Sizes:
    """Count bytes and operations; takes one step, for the optimiser has no state before it.

    Raises:
        BadInputError: no operation was counted, so that no speed could be derived from them.
    """
    model = trainee.model
    made = trainee.batch(batch)
    flops = _flops(trainee, trainee.device.moved(made), batch)
    trained = [p for p in model.parameters() if p.grad is not None]
    sizes = Sizes(
        parameter_bytes=_bytes(list(model.parameters())),
        parameter_count=sum(p.numel() for p in model.parameters()),
        gradient_bytes=_bytes([p.grad for p in trained if p.grad is not None]),
        tensor_count=len(trained),
        buffer_bytes=_bytes(list(model.buffers())),
        optimizer_bytes=_state_bytes(trainee),
        flops_per_sample=flops / batch,
        input_bytes_per_sample=_bytes(tensors_of(made)) / batch,
        precision=_precision(trained),
    )
    if not flops:
        raise BadInputError(
            f"no FLOPs were counted in {trainee.subject.name}: torch counts matrix products, "
            "convolutions and attention, and the model has none"
        )
    return sizes


def _flops(trainee: Trainee, batch: object, size: int) -> int:
    counter = FlopCounterMode(display=False)
    # By its formula: of the fused kernels, torch counts those of GPUs and leaves out that of CPUs.
    with sdpa_kernel(SDPBackend.MATH), counter:
        trainee.step(batch, size=size)
    return counter.get_total_flops()


def _state_bytes(trainee: Trainee) -> int:
    states = trainee.subject.optimizer.state.values()
    # A step counter for each tensor is no state that grows with the model.
    return _bytes([t for state in states for t in tensors_of(state) if t.dim()])


def _precision(trained: list[torch.nn.Parameter]) -> Precision:
    """Return the format of most parameters."""
    counts: dict[torch.dtype, int] = {}
    for parameter in trained:
        counts[parameter.dtype] = counts.get(parameter.dtype, 0) + parameter.numel()
    return _PRECISIONS.get(max(counts, key=lambda dtype: counts[dtype]), Precision.FP32)


def _bytes(tensors: list[Tensor] | list[torch.nn.Parameter]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
