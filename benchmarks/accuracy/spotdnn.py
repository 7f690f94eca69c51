"""spotDNN's published figures and its contention formula, by the product's code.

The paper prints convergence coefficients to two digits but none of its speed constants, so the
formula is checked on the synthetic reference problem: ResNet-110's size and request, and invented
compute times.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.product import Product
from benchmarks.accuracy.table import Row
from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.workload import (
    ComputeProfile,
    Contention,
    FixedBatch,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.perfmodel.convergence import convergence_coefficient

PRINTED_COEFFICIENTS = [  # shares of the updates, and R as printed
    ((1 / 2, 1 / 2), 0.71),
    ((1 / 3, 1 / 3, 1 / 3), 0.82),
    ((1 / 4, 1 / 4, 1 / 4, 1 / 4), 0.87),
    ((0.64, 0.36), 0.51),  # p3.2xlarge and g4dn.4xlarge on VGG-19
]
MODEL_MB, REQUESTED_MB_PER_S, SERVER_MB_PER_S, PCIE_MB_PER_S = 11.54, 142.0, 1200.0, 10_000.0
SLOPE, OFFSET = 0.20, -0.20
FORMULA_TARGET = 1e-6  # percent: the same formula twice


@dataclass(frozen=True, slots=True)
class _Worker:
    """One instance type of the reference problem."""

    gpus: int
    compute_s: float
    batch: int


WORKERS = {"p3.2xlarge": _Worker(1, 0.42, 512), "g4dn.12xlarge": _Worker(4, 0.95, 512)}


def spotdnn_rows(product: Product) -> list[Row]:
    """Compare coefficients with the printed digits and speeds with the formula by hand."""
    wrong = [
        shares
        for shares, printed in PRINTED_COEFFICIENTS
        if f"{_coefficient(shares):.2f}" != f"{printed:.2f}"
    ]
    return [
        Row(
            what=f"spotDNN's R, wrong in a printed digit, of {len(PRINTED_COEFFICIENTS)}",
            unit="",
            ours=float(len(wrong)),
            target=0.0,
        ),
        Row(
            what="spotDNN's contention formula, 1-40 workers, worst",
            unit="%",
            ours=_formula_gap(product),
            target=FORMULA_TARGET,
        ),
    ]


def formula_speed(counts: dict[str, int]) -> float:
    """Return the cluster's steps/s by the paper's equations, written out by hand."""
    n = sum(counts.values())
    if SERVER_MB_PER_S / n >= REQUESTED_MB_PER_S:
        bandwidth = REQUESTED_MB_PER_S
    else:
        p = min(SLOPE * math.sqrt(n) + OFFSET, 1.0)
        bandwidth = p * SERVER_MB_PER_S / n + (1 - p) * REQUESTED_MB_PER_S
    speed = 0.0
    for name, count in counts.items():
        worker = WORKERS[name]
        pcie_s = 2 * worker.gpus * MODEL_MB / PCIE_MB_PER_S
        speed += count / (worker.compute_s + 2 * MODEL_MB / bandwidth + pcie_s)
    return speed


def _coefficient(shares: Sequence[float]) -> float:
    counts, speeds = np.ones((len(shares), 1)), np.array(shares)[:, None]
    return float(convergence_coefficient(counts, speeds)[0])


def _formula_gap(product: Product) -> float:
    fleets = [{"p3.2xlarge": n} for n in range(1, 41)]
    fleets += [{"p3.2xlarge": n, "g4dn.12xlarge": m} for n in range(1, 9) for m in range(1, 9)]
    rows = [
        {
            "strategy": "asp-ps",
            "fleet": " + ".join(f"{name}*{count}" for name, count in fleet.items()),
            "batch_per_gpu": 512,
        }
        for fleet in fleets
    ]
    predicted = product.predict(rows, {"ResNet-110": _reference_job()})
    gaps = [
        abs(p.cluster_steps_per_s / formula_speed(fleet) - 1)
        for p, fleet in zip(predicted, fleets, strict=True)
    ]
    return 100 * max(gaps)


def _reference_job() -> JobSpec:
    serving = ParameterServing(
        contention=Contention.SPOTDNN,
        requested_mbps=8 * REQUESTED_MB_PER_S,
        bandwidth_mbps=8 * SERVER_MB_PER_S,
        contention_slope=SLOPE,
        contention_offset=OFFSET,
    )
    workload = Workload(
        strategy=Strategy.ASP_PS,
        model=ModelSize(parameter_bytes=MODEL_MB * 1e6),
        batch=FixedBatch(per_gpu_count=512),
        compute={
            name: ComputeProfile(per_sample_s=worker.compute_s / worker.batch)
            for name, worker in WORKERS.items()
        },
        parameter_serving=serving,
        pcie_mbps=8 * PCIE_MB_PER_S,
    )
    target = Target(kind=TargetKind.STEPS, value=10_000.0)
    return JobSpec(name="reference", workload=workload, goal=Goal(target=target), limits=Limits())
