"""A worker's steps: take a batch, compute its gradient, exchange it, tell the agent."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spotwright.domain.errors import (
    BatchError,
    LossNotFiniteError,
    MemoryDoesNotFitError,
    TrainingError,
)
from spotwright.profiler.devices import Device, telling_out_of_memory
from spotwright.train.script import Task, batches, sample_count
from spotwright.train.worker import Worker
from spotwright_agent.training import StepReporter

_LEAVES_BEFORE_S = 10.0  # an interruption: a step may still end


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResult:
    """What a worker did."""

    worker: str
    steps: int
    applied: int
    samples: int
    last_loss: float | None
    mean_staleness: float | None
    reconnects: int
    ended: str  # over, stopped, interrupted, late: it was over before


class TrainingLoop:
    """The steps of one worker."""

    def __init__(
        self,
        task: Task,
        worker: Worker,
        *,
        batch: int,
        reporter: StepReporter | None = None,
        stops: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare to train.

        Args:
            task: the model is that of the worker.
            worker: has joined, or is about to.
            batch: samples of a step.
            reporter: tells steps to the agent of this host, and hears of interruptions.
            stops: asked after each step.
        """
        self._task, self._worker, self._reporter, self._stops = task, worker, reporter, stops
        self._batch = batch
        self._batches = batches(task.data, worker=worker.name, batch=batch)
        self._device = next(task.model.parameters()).device
        self._applied = self._samples = self._staleness = self._steps = 0
        self._last_loss: float | None = None

    def run(self) -> WorkerResult:
        """Train until training is over, or this worker is to stop.

        Raises:
            LossNotFiniteError: loss or gradient is NaN or infinite.
            BatchError: the data gives an empty batch.
        """
        self._task.model.train()
        ended = "over"
        while not self._worker.is_over:
            if self._stops():
                ended = "stopped"
                break
            if self._is_taken_away():
                ended = "interrupted"
                break
            self.step()
        return self.result(ended)

    def skip(self, count: int) -> None:
        """Begin behind so many batches: they were trained on before."""
        self._batches = batches(
            self._task.data, worker=self._worker.name, batch=self._batch, start=count
        )

    def step(self) -> None:
        """Make one step."""
        started_s = time.perf_counter()
        inputs, targets = next(self._batches)
        samples = sample_count(inputs)
        if samples < 1:
            raise BatchError(
                f"worker {self._worker.name}: an empty batch at step {self._worker.sequence + 1}"
            )
        got_s = time.perf_counter()
        loss = self._loss(inputs, targets)
        computed_s = time.perf_counter()
        told = self._worker.exchange(loss=loss, batch=samples)
        ended_s = time.perf_counter()
        self._steps, self._applied = self._steps + 1, self._applied + told.applied
        self._samples, self._staleness = self._samples + samples, self._staleness + told.staleness
        self._last_loss = loss
        if self._reporter is not None:
            self._reporter.step(
                told.sequence,
                step_s=ended_s - started_s,
                samples=samples,
                loss=loss,
                data_wait_s=got_s - started_s,
                compute_s=computed_s - got_s,
                communication_s=ended_s - computed_s,
            )

    def result(self, ended: str) -> WorkerResult:
        """Return what was done so far."""
        return WorkerResult(
            worker=self._worker.name,
            steps=self._steps,
            applied=self._applied,
            samples=self._samples,
            last_loss=self._last_loss,
            mean_staleness=self._staleness / self._steps if self._steps else None,
            reconnects=self._worker.reconnects,
            ended=ended,
        )

    def _loss(self, inputs: object, targets: object) -> float:
        """Return the loss of a batch, its gradient added to the model's."""
        inputs, targets = moved(inputs, self._device), moved(targets, self._device)
        try:
            with telling_out_of_memory(Device(self._device), batch=sample_count(inputs)):
                loss = self._task.loss(self._task.model(inputs), targets)
                value = float(loss.detach())
                if math.isfinite(value):
                    loss.backward()  # type: ignore[no-untyped-call]
        except MemoryDoesNotFitError as error:
            raise TrainingError(f"worker {self._worker.name}: {error}") from error
        if not math.isfinite(value):
            step = self._worker.sequence + 1
            raise LossNotFiniteError(value, worker=self._worker.name, step=step)
        return value

    def _is_taken_away(self) -> bool:
        warning = self._reporter.warning() if self._reporter is not None else None
        if warning is None or warning.kind != "interruption":
            return False
        return (warning.seconds_left or 0.0) < _LEAVES_BEFORE_S


def moved(value: Any, device: torch.device) -> Any:
    """Return tensors on the model's device."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return {name: moved(one, device) for name, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(one, device) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(moved(one, device) for one in value)
    return value
