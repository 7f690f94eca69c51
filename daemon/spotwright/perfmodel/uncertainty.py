"""How sure a prediction is.

A calibrated workload carries conformal quantiles of its residuals; a GPU that was never measured
and a ring larger than any that was widen them. Without a calibration, the error
of the compute estimate is common to all nodes, the spread between equal instances averages out over
asynchronous workers and not over synchronous ones, and the parts add in squares of logarithms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from spotwright.domain.prediction import Interval
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.step_model import ClusterSpeed, Floats, WorkerClass

Z90 = 1.6449  # two-sided 90 %, one-sided 95 %
COMMUNICATION_SD = 0.10  # of the communication terms, where nothing was calibrated
_MODEL_SD = 0.04  # of the model itself
_LARGEST_MEASURED_RING, _SD_PER_DOUBLING = 64, 0.15  # GPUs


@dataclass(frozen=True, slots=True)
class LogBounds:
    """How far the logarithm of a figure may lie below and above: the ends of a 90 % interval."""

    low: float  # negative
    high: float

    def widened(self, log_sd: float) -> "LogBounds":
        """Add an independent uncertainty."""
        extra = Z90 * log_sd
        return LogBounds(-math.hypot(self.low, extra), math.hypot(self.high, extra))

    def around(self, value: float) -> Interval:
        """Return the interval of a figure."""
        return Interval(value * math.exp(self.low), value, value * math.exp(self.high))

    def probability_within(self, limit: float, values: Floats) -> float:
        """Return how likely a figure stays within a limit, on average over what it may be around.

        The logarithm of the figure is normal on either side.
        """
        room = np.log(limit / values[np.isfinite(values)])
        width, certain = np.where(room >= 0, self.high, -self.low), np.copysign(np.inf, room)
        score = Z90 * np.divide(room, width, out=certain, where=width > 0)
        return float(ndtr(score).sum()) / len(values)


def step_bounds(
    workload: Workload, workers: Sequence[WorkerClass], counts: Floats, speed: ClusterSpeed
) -> LogBounds:
    """Return the 90 % bounds of one fleet's step time."""
    share = float(speed.communication_fraction[0])
    estimate_sd = (1 - share) * max((w.compute.model_sd for w in workers), default=0.0)
    beyond_sd = share * _beyond_measured_sd(workload, workers, counts)
    calibrated = workload.interval
    if calibrated is not None:
        scale = math.hypot(calibrated.base_scale, calibrated.network_scale * share)
        seen = LogBounds(
            min(calibrated.low_quantile * scale, 0.0), max(calibrated.high_quantile * scale, 0.0)
        )
        return seen.widened(math.hypot(estimate_sd, beyond_sd))
    spread = (1 - share) * max((w.compute.device_sd for w in workers), default=0.0)
    if workload.strategy is Strategy.ASP_PS:
        spread /= math.sqrt(counts.sum())
    communication_sd = COMMUNICATION_SD * share
    log_sd = math.hypot(_MODEL_SD, estimate_sd, spread, communication_sd, beyond_sd)
    return LogBounds(-Z90 * log_sd, Z90 * log_sd)


def _beyond_measured_sd(
    workload: Workload, workers: Sequence[WorkerClass], counts: Floats
) -> float:
    """Return what larger rings than any that was measured add: nobody has seen their losses."""
    if workload.strategy is not Strategy.ALLREDUCE:
        return 0.0
    gpus = sum(count * worker.gpus for count, worker in zip(counts, workers, strict=True))
    return _SD_PER_DOUBLING * max(0.0, math.log2(gpus / _LARGEST_MEASURED_RING))
