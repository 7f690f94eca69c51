"""Rows measured on a made-up truth: the product's own model with parameters that a test knows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Target, TargetKind
from spotwright.domain.measurement import Configuration, Measurement
from spotwright.domain.questions import RowPrediction
from spotwright.domain.workload import ModelSize, Strategy, Workload
from spotwright.usecases.calibrate_workloads import CalibratedModel, calibrate_workloads
from spotwright.usecases.predict_configurations import predict_configurations
from tests.usecases.example_job import catalog


def truth(strategy: Strategy, *, parameter_bytes: float = 1e8, **parts: Any) -> JobSpec:
    """Return a job of 160 tensors; keyword arguments are parts of its workload."""
    size = ModelSize(parameter_bytes=parameter_bytes, tensor_count=160)
    return JobSpec(
        name="truth",
        workload=Workload(strategy=strategy, model=size, **parts),
        goal=Goal(target=Target(kind=TargetKind.STEPS, value=1000)),
        limits=Limits(network=NetworkRate.PEAK),
    )


def configurations(
    strategy: Strategy, *fleets: str, batches: Sequence[int] = (32,), **cells: Any
) -> list[Configuration]:
    """Return every fleet at every batch, one row each, from line 2 on."""
    pairs = [(fleet, batch) for fleet in fleets for batch in batches]
    return [
        Configuration(
            line=line,
            strategy=strategy,
            fleet=fleet,
            batch_per_gpu=batch,
            **({"parameter_bytes": 1e8, "tensor_count": 160} | cells),
        )
        for line, (fleet, batch) in enumerate(pairs, start=2)
    ]


def predict(
    rows: Sequence[Configuration], jobs: JobSpec | Mapping[str, JobSpec]
) -> list[RowPrediction]:
    by_model = {"model": jobs} if isinstance(jobs, JobSpec) else jobs
    return predict_configurations(rows, by_model, catalog(), path="rows.csv")[0]


def steps_s(rows: Sequence[Configuration], job: JobSpec) -> list[float]:
    """Return the mean worker step of every row."""
    return [prediction.step_s.mid for prediction in predict(rows, job)]


def measure(
    rows: Sequence[Configuration], job: JobSpec, *, noise: float = 0.0, seed: int = 1
) -> list[Measurement]:
    """Return what runs would have shown, with log-normal noise."""
    factors = np.exp(np.random.default_rng(seed).normal(0, noise, len(rows)))
    return [
        Measurement(configuration=row, step_s=float(step_s * factor))
        for row, step_s, factor in zip(rows, steps_s(rows, job), factors, strict=True)
    ]


def on_line(rows: Sequence[Measurement], line: int, *, factor: float) -> list[Measurement]:
    """Return rows of which one was disturbed."""
    return [
        replace(row, step_s=row.step_s * factor)
        if row.step_s is not None and row.configuration.line == line
        else row
        for row in rows
    ]


def fit(rows: Sequence[Measurement], base: JobSpec | None = None) -> CalibratedModel:
    """Return the only model of these rows, fitted."""
    (model,) = calibrate_workloads(rows, catalog(), path="rows.csv", base=base)
    return model
