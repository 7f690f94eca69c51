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
        self._bad = ""
        self._free_s = self._begun_s = time.monotonic()
        self._wait_s = 0.0
        self._loss: float | None = None

    @property
    def problem(self) -> str:
        """Why steps are not told, or warnings not acted upon; empty: all is well."""
        agreement = self._agreement.problem if self._agreement is not None else ""
        return self._bad or agreement or self.reporter.problem

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
        try:
            self._report(args, state)
            if self._agreement is not None:
                self._act(self._agreement.largest(self._wish()), control)
        except Exception as error:  # whatever it is, training goes on
            self._bad = f"step is not told: {error!r}"
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

    def _report(self, args: Any, state: Any) -> None:
        figures: StepFigures = {"data_wait_s": self._wait_s, "samples": _samples(args)}
        if self._loss is not None:
            figures["loss"], self._loss = self._loss, None
        step_s = self._wait_s + time.monotonic() - self._begun_s
        self.reporter.step(state.global_step, step_s=step_s, **figures)

    def _wish(self) -> int:
        """Return what this rank was warned of, once."""
        reason = self.reporter.should_save()
        if reason is None:
            return _NOTHING
        return _STOP if self._stops and reason.kind == "interruption" else _SAVE

    def _act(self, wish: int, control: Any) -> None:
        if wish >= _SAVE:
            control.should_save = control.should_save or self._saves
        if wish >= _STOP:
            control.should_training_stop = True


def _samples(args: Any) -> float:
    """Return how many samples this process has in a step, if the last batch is full."""
    return float(args.train_batch_size * args.gradient_accumulation_steps)
