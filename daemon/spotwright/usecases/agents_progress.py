"""How far training has come by what its agents have seen of its steps.

Asynchronous workers each make updates of their own, so their steps and samples add up. Synchronous
ones make every update together: the largest number of a step is how many there were, also after
training was restored from a checkpoint and made some of them again.
"""

from collections.abc import Sequence

from spotwright.domain.job_run import Progress
from spotwright.domain.telemetry import StepSums
from spotwright.domain.workload import Strategy


def agents_progress(sums: Sequence[StepSums], strategy: Strategy | None) -> Progress | None:
    """Return how far a job has come; None where no agent has seen a step."""
    if not sums:
        return None
    losses = [each.loss for each in sorted(sums, key=_place) if each.loss is not None]
    loss = losses[-1] if losses else None
    if strategy is not Strategy.ASP_PS:
        return Progress(steps=float(max(each.last_step for each in sums)), loss=loss)
    samples = [each.samples for each in sums if each.samples is not None]
    return Progress(
        steps=float(sum(each.step_count for each in sums)),
        samples=sum(samples) if len(samples) == len(sums) else None,
        loss=loss,
    )


def _place(sums: StepSums) -> int:
    return sums.last_step
