"""Small things to profile, with a clock that only they move."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spotwright.profiler.devices import HOST
from spotwright.profiler.subject import Subject, checked_subject
from spotwright.profiler.training import Trainee

WIDTH = 4


class HandClock:
    """Stands still until somebody takes time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def take(self, seconds: float) -> None:
        self.now_s += seconds


def summed(model: nn.Module, batch: Tensor) -> Tensor:
    out: Tensor = model(batch)
    return out.sum()


def subject(model: nn.Module, *, files: tuple[Path, ...] = (), **given: Any) -> Subject:
    """Return a model of WIDTH inputs as what is profiled."""
    built = {"model": model, "loss": summed, "batch": lambda size: torch.ones(size, WIDTH)}
    return checked_subject(built | given, name="it", files=files)


def trainee(model: nn.Module | None = None, **given: Any) -> Trainee:
    return Trainee(subject(model or nn.Linear(WIDTH, 1), **given), HOST)


def taking(clock: HandClock, seconds: Callable[[int], float]) -> Callable[..., Tensor]:
    """Return a loss that takes so many seconds of a batch."""

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        clock.take(seconds(len(batch)))
        return summed(model, batch)

    return loss


def nothing(_done: float) -> None:
    """Take note of no progress."""
