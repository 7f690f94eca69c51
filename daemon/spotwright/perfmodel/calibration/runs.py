"""Measured rows, resolved to fleets, and what a strategy must offer to be fitted to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.workload import Workload
from spotwright.perfmodel.calibration.map_fit import Parameter

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_ANY_SPEED_LOG_SD = 10.0  # so wide that one row alone is met to 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured row."""

    line: int
    fleet: Fleet
    batch_per_gpu: int
    step_s: float  # of one worker, the mean where workers differ
    placement: str  # rows of one placement leave a cross-validation together


@dataclass(frozen=True, slots=True)
class Steps:
    """Predicted steps of every row, and the share of each that is communication."""

    seconds: Floats
    communication_fraction: Floats


@dataclass(frozen=True, slots=True)
class Fitted:
    """The workload that fits rows best, and the figures in it that they hardly show."""

    workload: Workload
    hardly_shown: tuple[str, ...] = ()


class MeasuredRows(Protocol):
    """The rows of one model under one strategy."""

    runs: Sequence[Run]
    notes: Sequence[str]  # what these rows cannot tell

    def fit(self) -> Fitted:
        """Fit the rows."""

    def steps(self, workload: Workload) -> Steps:
        """Predict every row."""

    def take(self, index: Indices) -> Self:
        """Return some of the rows."""


def log_steps(runs: Sequence[Run]) -> Floats:
    """Return the logarithms of the measured steps."""
    logs: Floats = np.log(np.array([run.step_s for run in runs]))
    return logs


def devices(runs: Sequence[Run]) -> list[str]:
    """Return the names of what computes, sorted."""
    return sorted({group.device for run in runs for group in run.fleet.workers})


def batches(runs: Sequence[Run], device: str) -> set[int]:
    """Return the batch sizes a device was measured with."""
    return {
        run.batch_per_gpu
        for run in runs
        if any(group.device == device for group in run.fleet.workers)
    }


def worker_kinds(
    runs: Sequence[Run], *, by_batch: bool
) -> tuple[list[tuple[NodeGroup, int]], Floats]:
    """Return the kinds of worker that occur, each with its batch, and how many every row has.

    Args:
        runs: the rows.
        by_batch: whether equal nodes with different batches are different kinds.
    """
    kinds: dict[tuple[str, float, int], tuple[NodeGroup, int]] = {}
    cells: dict[tuple[tuple[str, float, int], int], int] = {}
    for row, run in enumerate(runs):
        for group in run.fleet.workers:
            batch = run.batch_per_gpu if by_batch else 0
            kind = (group.instance_type.name, group.gpus_per_node, batch)
            kinds.setdefault(kind, (group, run.batch_per_gpu))
            cells[kind, row] = cells.get((kind, row), 0) + group.node_count
    counts = [[float(cells.get((kind, row), 0)) for row in range(len(runs))] for kind in kinds]
    return list(kinds.values()), np.array(counts)


def compute_parameters(runs: Sequence[Run]) -> list[Parameter]:
    """Return wide priors of the compute profile of each device, from the scale of the rows."""
    found = []
    for device in devices(runs):
        mine = [r for r in runs if any(g.device == device for g in r.fleet.workers)]
        fastest, smallest = min(r.step_s for r in mine), min(r.batch_per_gpu for r in mine)
        per_sample = 0.7 * fastest / smallest
        found.append(
            Parameter(name=f"per_sample:{device}", centre=per_sample, log_sd=_ANY_SPEED_LOG_SD)
        )
        if len(batches(runs, device)) > 1:
            found.append(Parameter(name=f"fixed:{device}", centre=0.3 * fastest, log_sd=2.0))
    return found


def compute_notes(runs: Sequence[Run]) -> list[str]:
    """Say for which devices the rows cannot tell fixed from per-sample time."""
    single = [device for device in devices(runs) if len(batches(runs, device)) == 1]
    if not single:
        return []
    return [f"one batch size on {', '.join(single)}: compute is taken as proportional to the batch"]
