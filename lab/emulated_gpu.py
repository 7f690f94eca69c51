"""A GPU that is a stated step time around a real model.

The model is real: PyTorch computes its gradients on the CPU, of as many bytes in as many tensors as
stated. What a GPU would need beyond that is waited for: a third of the step in the forward pass,
the rest in the backward pass, in stages between which gradients become ready, as they do on a GPU.
A device with `on_cpu` has no GPU: it works through its step with the CPU instead of waiting, so
that it slows down when its host gets less of it.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spotwright.train.script import Task

_FORWARD_SHARE, _STAGES = 1 / 3, 8
_FEATURES, _CLASSES, _HIDDEN = 16, 4, 16
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a step takes on it: fixed_s + per_sample_s * batch, give or take a fraction."""

    name: str
    fixed_s: float
    per_sample_s: float
    jitter_fraction: float  # standard deviation of a step's time
    on_cpu: bool = False

    def step_s(self, batch: int) -> float:
        """Return the mean of a step's time."""
        return self.fixed_s + self.per_sample_s * batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The size of what is exchanged."""

    parameter_bytes: int
    tensor_count: int


class Pace:
    """Makes a step last as long as it would on the device."""

    def __init__(self, device: Device, seed: int) -> None:
        self._device, self._dice = device, torch.Generator().manual_seed(seed)
        self._begun_s = self._length_s = 0.0

    def begin(self, batch: int) -> None:
        """Draw how long this step takes: log-normal, with the stated mean and spread."""
        log_sd = math.sqrt(math.log1p(self._device.jitter_fraction**2))
        drawn = float(torch.randn((), generator=self._dice)) * log_sd - log_sd**2 / 2
        self._length_s = self._device.step_s(batch) * math.exp(drawn)
        self._begun_s = self._now_s()

    def reach(self, share: float) -> None:
        """Return when so much of the step is over."""
        end_s = self._begun_s + share * self._length_s
        if self._device.on_cpu:
            while self._now_s() < end_s:
                pass
        elif (left_s := end_s - self._now_s()) > 0:
            time.sleep(left_s)

    def _now_s(self) -> float:
        return time.thread_time() if self._device.on_cpu else time.perf_counter()


class _Stage(torch.autograd.Function):
    """Passes values through; on the way back it takes its time, then has its gradients ready."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, pace: Pace, share: float, *parts: Tensor) -> Tensor:
        ctx.pace, ctx.share, ctx.parts = pace, share, parts
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        ctx.pace.reach(ctx.share)
        return gradients[0], None, None, *(torch.full_like(part, 1e-6) for part in ctx.parts)


class EmulatedModel(nn.Module):
    """A small classifier with parameters beside it that make up the stated size."""

    def __init__(self, shape: ModelShape, device: Device, seed: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(_FEATURES, _HIDDEN), nn.Linear(_HIDDEN, _CLASSES)
        own = sum(parameter.numel() for parameter in self.parameters())
        count = max(1, shape.tensor_count - 4)
        each = max(1, (shape.parameter_bytes // _FLOAT_BYTES - own) // count)
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(each)) for _ in range(count)])
        self._pace = Pace(device, seed)

    def forward(self, inputs: Tensor) -> Tensor:
        """Classify a batch."""
        self._pace.begin(len(inputs))
        values = torch.relu(self.first(inputs))
        stages = min(_STAGES, len(self.parts))
        for stage in range(stages):
            share = 1 - (1 - _FORWARD_SHARE) * stage / stages
            values = _Stage.apply(values, self._pace, share, *self.parts[stage::stages])  # type: ignore[no-untyped-call]
        self._pace.reach(_FORWARD_SHARE)
        outputs: Tensor = self.last(values)
        return outputs


def emulated_task(shape: ModelShape, device: Device, *, seed: int) -> Task:
    """Return a model of a size on a device, and patterns for it to learn."""
    torch.manual_seed(1)  # the same model on every host
    model = EmulatedModel(shape, device, seed)
    return Task(model, torch.optim.SGD(model.parameters(), lr=0.02), nn.CrossEntropyLoss(), _data)


def _data(worker: str, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    dice = torch.Generator().manual_seed(sum(worker.encode()))
    patterns = torch.randn(_CLASSES, _FEATURES, generator=torch.Generator().manual_seed(2))
    while True:
        classes = torch.randint(_CLASSES, (batch,), generator=dice)
        yield patterns[classes] + torch.randn(batch, _FEATURES, generator=dice), classes
