"""The flags of `profile`, read."""

from dataclasses import dataclass
from pathlib import Path

from spotwright.domain.errors import BadInputError
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import FixedBatch, Strategy

_USUAL_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFlags:
    """The flags as they were written."""

    target: str
    batch: int | None
    batches: str | None
    data: Path | None
    out: Path | None
    job: Path | None
    model: str | None
    strategy: Strategy | None
    instances: str | None
    seconds: float
    device: str
    loader_processes: int
    exchange: bool
    listen: str | None
    as_json: bool

    def job_batch(self, base: JobSpec | None) -> int:
        """Return the batch of the job: the flag, the largest measured, the job's own, or 32."""
        measured = self.measured_batches()
        rule = base.workload.batch if base else None
        of_job = rule.per_gpu_count if isinstance(rule, FixedBatch) else None
        if self.batch is not None:
            return self.batch
        return max(measured) if measured else of_job or _USUAL_BATCH

    def measured_batches(self) -> tuple[int, ...]:
        """Return --batches, in order; none where it was not given.

        Raises:
            BadInputError: it is no list of whole numbers.
        """
        if self.batches is None:
            return ()
        try:
            return tuple(sorted({int(text) for text in self.batches.split(",")}))
        except ValueError:
            raise BadInputError(
                f"--batches: {self.batches!r} is not a list of whole numbers such as 8,16,32"
            ) from None

    def instance_names(self) -> tuple[str, ...]:
        """Return --instances; none where it was not given."""
        return tuple(name.strip() for name in (self.instances or "").split(",") if name.strip())
