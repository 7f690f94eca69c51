"""Steps of a Hugging Face Trainer, and a checkpoint when the agent warns.

trainer = Trainer(..., callbacks=[SpotwrightCallback()])
"""

import time
from typing import Any

from transformers import TrainerCallback

from spotwright_agent.training.rank_agreement import RankAgreement
from spotwright_agent.training.reporter import StepFigures, StepReporter

_NOTHING, _SAVE, _STOP = 0, 1, 2


class SpotwrightCallback(TrainerCallback):
    """Reports every step; saves once for each warning, at the same step on all ranks."""

    def __init__(
        self,
        reporter: StepReporter | None = None,
        *,
        save_on_warning: bool = True,
        stop_on_interruption: bool = False,
    ) -> None:
        """Report to the agent.

        Args:
            reporter: by default one of its own.
            save_on_warning: make a checkpoint when the agent warns or asks for one.
            stop_on_interruption: end training after it where the host will be taken away.
        """
        self.reporter = reporter or StepReporter()
        self._saves, self._stops = save_on_warning, stop_on_interruption
        self._agreement: RankAgreement | None = None
        self._handled: tuple[str, float | None] | None = None
        self._free_s = self._begun_s = time.monotonic()
        self._wait_s = 0.0
        self._loss: float | None = None

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Get ready; all ranks come here."""
        self._agreement = RankAgreement() if self._saves or self._stops else None
        self._note_free()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Note that the batches of a step are there."""
        self._begun_s = time.monotonic()
        self._wait_s = self._begun_s - self._free_s

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the step; a checkpoint or an evaluation after it belongs to none."""
        figures: StepFigures = {"data_wait_s": self._wait_s, "samples": _samples(args)}
        if self._loss is not None:
            figures["loss"], self._loss = self._loss, None
        step_s = self._wait_s + time.monotonic() - self._begun_s
        self.reporter.step(state.global_step, step_s=step_s, **figures)
        if self._agreement is not None:
            self._act(self._agreement.largest(self._wish()), control)
        self._note_free()

    def on_log(self, *_: Any, logs: dict[str, Any] | None = None, **__: Any) -> None:
        """Keep the loss for the next step: the Trainer has read it from the GPU by now."""
        loss = (logs or {}).get("loss")
        self._loss = loss if isinstance(loss, float) else None
        self._note_free()

    def on_save(self, *_: Any, **__: Any) -> None:
        """Note that saving is over."""
        self._note_free()

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        """Note that an evaluation is over."""
        self._note_free()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Leave no exchange under way."""
        if self._agreement is not None:
            self._agreement.close()

    def _note_free(self) -> None:
        """From now on the Trainer does nothing but wait for batches."""
        self._free_s = time.monotonic()

    def _wish(self) -> int:
        """Return what this rank's warning asks for, once."""
        warning = self.reporter.warning()
        if warning is None or warning.kind == "withdrawn":
            self._handled = None
            return _NOTHING
        # A hint that is repeated has another deadline and is the same; each request counts.
        is_request = warning.kind == "checkpoint"
        handled = (warning.kind, warning.time_unix_ms if is_request else None)
        if handled == self._handled:
            return _NOTHING
        self._handled = handled
        return _STOP if self._stops and warning.kind == "interruption" else _SAVE

    def _act(self, wish: int, control: Any) -> None:
        if wish >= _SAVE:
            control.should_save = control.should_save or self._saves
        if wish >= _STOP:
            control.should_training_stop = True


def _samples(args: Any) -> float:
    """Return how many samples this process has in a step, if the last batch is full."""
    return float(args.train_batch_size * args.gradient_accumulation_steps)
