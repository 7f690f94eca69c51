"""One training step of a subject, as often as it is wanted."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spotwright.domain.errors import BadInputError
from spotwright.profiler.devices import Device, telling_out_of_memory, tensors_of
from spotwright.profiler.find import telling_failures
from spotwright.profiler.subject import Subject

Clock = Callable[[], float]


class Trainee:
    """A subject on a device."""

    def __init__(self, subject: Subject, device: Device) -> None:
        """Move the model there.

        Raises:
            OutsideWorldError: it has no room.
        """
        self.subject, self.device = subject, device
        with telling_out_of_memory(device):
            self.model = subject.model.to(device.torch)
        self.model.train()

    def batch(self, size: int) -> Any:
        """Return a synthetic batch on the host.

        Raises:
            BadInputError: the subject's function failed, or gave no tensors.
            MemoryDoesNotFitError: the host has no room for it.
        """
        what = f"batch({size}) of {self.subject.name}"
        with telling_failures(what), telling_out_of_memory(self.device, batch=size):
            made = self.subject.batch(size)
        if not tensors_of(made):
            kind = type(made).__qualname__
            raise BadInputError(
                f"{what} gave a {kind} without any tensor; return tensors, or tuples, lists or "
                "mappings of them"
            )
        return made

    def loss(self, batch: Any, *, size: int) -> Tensor:
        """Return the loss of a batch that is on the device.

        Raises:
            BadInputError: it failed, or is no tensor of one element that the model can learn from.
            MemoryDoesNotFitError: there is no room for what the backward pass needs.
        """
        what = f"loss() of {self.subject.name} at a batch of {size}"
        with telling_failures(what), telling_out_of_memory(self.device, batch=size):
            loss = self.subject.loss(self.model, batch)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            found = f"{tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__qualname__
            raise BadInputError(f"{what} gave {found}; return a tensor with one element")
        if not loss.requires_grad:
            raise BadInputError(f"{what} does not depend on the model's parameters")
        return loss

    def step(self, batch: Any, *, size: int) -> Tensor:
        """Take one step on a batch that is on the device; return its loss."""
        optimizer = self.subject.optimizer
        optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch, size=size)
        with (
            telling_failures(f"a step of {self.subject.name} at a batch of {size}"),
            telling_out_of_memory(self.device, batch=size),
        ):
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return loss.detach()

    def timed_step(self, batch: Any, *, size: int, clock: Clock) -> float:
        """Return the seconds of one step, copying of the batch left out.

        Raises:
            BadInputError: the loss is not finite any more.
        """
        self.device.synchronize()
        start_s = clock()
        loss = self.step(batch, size=size)
        self.device.synchronize()
        seconds = clock() - start_s
        require_finite(loss, f"{self.subject.name} at a batch of {size}")
        return seconds


def require_finite(loss: Tensor, of_what: str) -> None:
    """Raise BadInputError where a loss is not a number."""
    value = float(loss)
    if not math.isfinite(value):
        raise BadInputError(
            f"the loss of {of_what} is {value}; steps of such a run say nothing: lower the "
            "learning rate, or check the loss and the batch"
        )


def seed(value: int = 0) -> None:
    """Make what torch draws the same in every profile."""
    torch.manual_seed(value)
