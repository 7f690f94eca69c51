"""lambdaDNN's published runs, predicted by the project's code and by the paper's formula.

A run is load + steps * step + restarts * reload. Loading follows the paper's storage law, and what
remains of the measured time, divided by the steps, is what the law is fitted to.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from spotwright.domain.workload import Dataset, ModelSize, ServerlessLaw, Strategy, Workload
from spotwright.perfmodel.laws.serverless_law import (
    ServerlessFit,
    ServerlessRow,
    fit_serverless_law,
)
from spotwright.perfmodel.serverless import Lifecycle, lifecycle

SERVER_MBPS = 9_600.0  # the paper's B_PS, 1.2 GB/s
STORAGE_KNEE_MB = 1792.0  # beyond it more memory brings no more bandwidth (lambdadnn Predictor.py)
STORAGE_SLOPE, STORAGE_OFFSET = 0.002228 * 8, 16.12 * 8
LIFE_S = 870.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A model on its data set, and the paper's speed law a1 * MB + b1 for it."""

    sample_count: int
    dataset_mb: float
    model_mb: float
    speed: tuple[float, float]

    @property
    def workload(self) -> Workload:
        """The task in the project's terms."""
        law = ServerlessLaw(
            samples_per_s_per_mb=self.speed[0],
            samples_per_s_offset=self.speed[1],
            storage_mbps_per_mb=STORAGE_SLOPE,
            storage_mbps_offset=STORAGE_OFFSET,
            storage_max_mbps=STORAGE_SLOPE * STORAGE_KNEE_MB + STORAGE_OFFSET,
            batch_per_function_count=1,
            max_global_batch_count=1,
            resume_s=0.0,
        )
        return Workload(
            strategy=Strategy.SERVERLESS,
            model=ModelSize(parameter_bytes=self.model_mb * 1e6),
            serverless=law,
            dataset=Dataset(sample_count=self.sample_count, size_bytes=self.dataset_mb * 1e6),
        )


TASKS = {
    "1DCNN": Task(sample_count=15_000, dataset_mb=41.1, model_mb=2.0, speed=(0.1, -8.8)),
    "MobileNet": Task(sample_count=50_000, dataset_mb=148.0, model_mb=18.0, speed=(0.03, 5.6)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run."""

    model: str
    function_count: int
    memory_mb: float
    local_batch: float
    epochs: float
    observed_s: float
    paper_s: float | None

    @property
    def step_count(self) -> float:
        """Steps of the whole run."""
        samples = TASKS[self.model].sample_count * self.epochs
        return samples / (self.function_count * self.local_batch)

    def life(self, training_s: float) -> Lifecycle:
        """Return what loading and restarts add."""
        return lifecycle(
            TASKS[self.model].workload,
            memory_mb=self.memory_mb,
            functions=self.function_count,
            training_s=training_s,
        )

    def measured_step(self) -> ServerlessRow:
        """Return the row a law is fitted to."""
        life = self.life(0.0)
        restarts = max(0, ceil(self.observed_s / LIFE_S) - 1)
        training_s = self.observed_s - life.load_s - restarts * life.restart_s
        return ServerlessRow(
            memory_mb=self.memory_mb,
            function_count=self.function_count,
            local_batch=self.local_batch,
            step_s=training_s / self.step_count,
        )

    def predicted_s(self, fit: ServerlessFit) -> float:
        """Return the whole run by a fitted law."""
        training_s = self.step_count * fit.step_s(
            memory_mb=self.memory_mb,
            function_count=self.function_count,
            local_batch=self.local_batch,
        )
        return training_s + self.life(training_s).total_s

    def published_s(self) -> float:
        """Return the whole run by the paper's formula and its rounded constants."""
        task = TASKS[self.model]
        slope, offset = task.speed
        compute_s = self.local_batch / (slope * self.memory_mb + offset)
        exchange_s = 2 * task.model_mb / min(84.0, 1200.0 / self.function_count)
        return self.life(0.0).load_s + self.step_count * (compute_s + exchange_s)


def read_runs(path: Path) -> list[Run]:
    """Read the table of runs."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_run(record) for record in csv.DictReader(file)]


def left_out_errors(runs: Sequence[Run]) -> list[float]:
    """Return the relative error of each run by a law fitted on the others of its model."""
    errors = []
    for i, run in enumerate(runs):
        others = [r for j, r in enumerate(runs) if j != i and r.model == run.model]
        fit = fit_serverless_law(
            [other.measured_step() for other in others],
            parameter_bytes=TASKS[run.model].model_mb * 1e6,
            bandwidth_mbps=SERVER_MBPS,
        )
        errors.append(run.predicted_s(fit) / run.observed_s - 1)
    return errors


def published_errors(runs: Sequence[Run]) -> list[float]:
    """Return the relative error of each run by the paper's formula."""
    return [run.published_s() / run.observed_s - 1 for run in runs]


def _run(record: dict[str, str]) -> Run:
    return Run(
        model=record["model"],
        function_count=int(record["n_functions"]),
        memory_mb=float(record["memory_mb"]),
        local_batch=float(record["local_batch"]),
        epochs=float(record["epochs"]),
        observed_s=float(record["observed_s"]),
        paper_s=float(record["paper_predicted_s"]) if record["paper_predicted_s"] else None,
    )
