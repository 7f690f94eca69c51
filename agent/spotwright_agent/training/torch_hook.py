"""Steps of a PyTorch loop: told after each step of the optimizer, batches timed.

    reporter = StepReporter()
    report_steps(optimizer, reporter, samples_per_step=256, model=ddp_model)
    for batch in timed_batches(loader, reporter): ...

Nothing here waits for a GPU. Times are the host's: it runs ahead of the GPU by some kernels, so
single steps may be off, their mean is not.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch

from spotwright_agent.training.reporter import StepFigures, StepReporter

_Batch = TypeVar("_Batch")
# DistributedDataParallel times its first ten iterations and every hundredth one. It is asked after
# those, for it takes 60 us.
_ASKED_EVERY, _ASKED_AT = 100, 10


def report_steps(
    optimizer: torch.optim.Optimizer,
    reporter: StepReporter,
    *,
    samples_per_step: float | None = None,
    model: torch.nn.Module | None = None,
    first_step: int = 0,
) -> "StepHook":
    """Report a step whenever the optimizer has made one.

    Args:
        optimizer: any one. A step that a GradScaler skips is not reported.
        reporter: where to report.
        samples_per_step: of this process, all micro-batches of the step together.
        model: if it is a DistributedDataParallel, what it measures of itself is reported.
        first_step: number of the first step, after a checkpoint.
    """
    return StepHook(optimizer, reporter, samples_per_step, model=model, first_step=first_step)


class StepHook:
    """Reports the steps of one optimizer until it is removed."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        reporter: StepReporter,
        samples_per_step: float | None,
        *,
        model: torch.nn.Module | None,
        first_step: int,
    ) -> None:
        self._reporter, self._samples = reporter, samples_per_step
        self._model, self._count, self._first_step = model, 0, first_step
        self._iteration = 0
        self._handle = optimizer.register_step_post_hook(self._stepped)

    def remove(self) -> None:
        """Report no more."""
        self._handle.remove()

    def _stepped(self, *_: Any) -> None:
        figures: StepFigures = {"samples": self._samples}
        if self._model is not None and self._count % _ASKED_EVERY == _ASKED_AT:
            figures = {**figures, **self._measured(self._model)}
        self._reporter.step(self._first_step + self._count, **figures)
        self._count += 1

    def _measured(self, model: torch.nn.Module) -> StepFigures:
        """Return what DistributedDataParallel measured lately, if it is new.

        Of communication only what is exposed, after the last gradient: parts of a step add up.
        """
        ask = getattr(model, "_get_ddp_logging_data", None)
        try:
            told = ask() if ask is not None else {}
            iteration = int(told.get("iteration", 0))
            if iteration == self._iteration or "backward_comm_time" not in told:
                return {}
            self._iteration = iteration
            compute_ns = told["forward_compute_time"] + told["backward_compute_time"]
            exposed_ns = told["backward_comm_time"] - told["backward_compute_comm_overlap_time"]
            return {"compute_s": compute_ns / 1e9, "communication_s": max(0, exposed_ns) / 1e9}
        except Exception as error:  # not a public interface: it may change, training must go on
            self._model = None
            self.problem = f"what DistributedDataParallel measured cannot be read: {error!r}"
            return {}

    problem = ""


class timed_batches(Generic[_Batch]):  # noqa: N801  it reads as a verb where it is used
    """Give the batches of a loader, and count the time until each as waiting for input."""

    def __init__(self, loader: Iterable[_Batch], reporter: StepReporter) -> None:
        self._loader, self._reporter = loader, reporter

    def __len__(self) -> int:
        """Return how many batches there are, where the loader knows."""
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[_Batch]:
        """Start anew, as the loader does."""
        with self._reporter.data_wait():
            batches = iter(self._loader)  # starts the workers
        while True:
            with self._reporter.data_wait():
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            yield batch
