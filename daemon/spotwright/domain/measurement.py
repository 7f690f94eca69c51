"""Configurations that were run, or might be, and how fast they stepped."""

from dataclasses import dataclass

from spotwright.domain.workload import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One row of a measurements file, without its result."""

    line: int  # where it stands in its file
    strategy: Strategy
    fleet: str  # a fleet expression of workers
    batch_per_gpu: int
    model: str | None = None
    ps_count: int | None = None
    ps_type: str | None = None
    parameter_bytes: float | None = None
    tensor_count: int | None = None
    flops_per_sample: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A configuration and the speed it had: exactly one of the two figures."""

    configuration: Configuration
    step_s: float | None = None
    cluster_steps_per_s: float | None = None

    def __post_init__(self) -> None:
        if (self.step_s is None) == (self.cluster_steps_per_s is None):
            raise ValueError("a measurement has either step_s or cluster_steps_per_s")

    def worker_step_s(self, worker_count: int) -> float:
        """Return the mean step time of one worker."""
        if self.step_s is not None:
            return self.step_s
        assert self.cluster_steps_per_s is not None
        return worker_count / self.cluster_steps_per_s
