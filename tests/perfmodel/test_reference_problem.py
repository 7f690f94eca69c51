"""The synthetic reference problem in the shape of spotDNN, beside a scalar implementation of it."""

import math
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.fleet import Role
from spotwright.domain.job import Goal, JobSpec, Limits, NetworkRate, Target, TargetKind
from spotwright.domain.workload import (
    ComputeProfile,
    Contention,
    FixedBatch,
    ModelSize,
    ParameterServing,
    SpotdnnLoss,
    Strategy,
    Workload,
)
from spotwright.perfmodel.fleets import FleetEvaluator, FleetFigures
from spotwright.perfmodel.step_model import worker_class
from tests.perfmodel.example_clusters import offered
from tests.usecases.example_job import catalog


class Kind(NamedTuple):
    name: str
    gpus: int
    compute_s: float
    batch_per_gpu: int
    usd_per_hour: float


KINDS = [
    Kind("p3.2xlarge", 1, 0.42, 512, 1.25),
    Kind("p2.8xlarge", 8, 1.10, 256, 2.16),
    Kind("g4dn.12xlarge", 4, 0.95, 512, 1.22),
    Kind("g4dn.4xlarge", 1, 0.95, 512, 0.36),
    Kind("g3.16xlarge", 4, 0.80, 256, 1.37),
    Kind("g3.8xlarge", 2, 0.80, 256, 0.69),
    Kind("g3.4xlarge", 1, 0.80, 256, 0.34),
]
GOALS = [(0.9, 2400), (0.8, 2400), (0.7, 3600), (0.65, 3600), (0.6, 5400), (0.6, 4000)]
SERVER_USD_PER_HOUR = 0.01


def problem(loss: float) -> JobSpec:
    """Return the reference problem with the paper's PCIe rate of 10 GB/s."""
    work = Workload(
        strategy=Strategy.ASP_PS,
        model=ModelSize(parameter_bytes=11.54e6),
        batch=FixedBatch(by_device={kind.name: kind.batch_per_gpu for kind in KINDS}),
        compute={
            kind.name: ComputeProfile(per_sample_s=kind.compute_s / kind.batch_per_gpu)
            for kind in KINDS
        },
        parameter_serving=ParameterServing(
            contention=Contention.SPOTDNN,
            bandwidth_mbps=9_600,
            requested_mbps=1_136,
            contention_slope=0.20,
            contention_offset=-0.20,
        ),
        convergence=SpotdnnLoss(c1=900, c2=-0.2, c3=2500, c4=0.2, c5=0.5, batch_range=(64, 8192)),
        pcie_mbps=80_000,
    )
    goal = Goal(target=Target(kind=TargetKind.LOSS, value=loss))
    return JobSpec(name="reference", workload=work, goal=goal, limits=Limits())


def evaluated(counts: list[list[int]], loss: float) -> FleetFigures:
    """Evaluate fleets, given as rows of counts."""
    job = problem(loss)
    types = {t.name: t for t in catalog().instance_types()}
    groups = [offered(types[kind.name], usd=kind.usd_per_hour) for kind in KINDS]
    server = offered(types["m5.xlarge"], usd=SERVER_USD_PER_HOUR, role=Role.PS)
    workers = [worker_class(job.workload, g, catalog().gpu, NetworkRate.PEAK) for g in groups]
    evaluator = FleetEvaluator(job, workers, [server], most_workers=70)
    return evaluator.evaluate(np.array(counts, float).T)


def by_hand(counts: list[int], loss: float) -> dict[str, float]:
    """Follow MODEL.md section 1, one worker at a time, in megabytes."""
    n, size, pcie, requested, supply = sum(counts), 11.54, 10_000.0, 142.0, 1200.0
    bandwidth = requested
    if requested > supply / n:
        p = min(0.20 * math.sqrt(n) - 0.20, 1)
        bandwidth = p * supply / n + (1 - p) * requested
    workers = [kind for kind, count in zip(KINDS, counts, strict=True) for _ in range(count)]
    times = [k.compute_s + 2 * size / bandwidth + 2 * k.gpus * size / pcie for k in workers]
    rates = [k.gpus * k.batch_per_gpu / t for k, t in zip(workers, times, strict=True)]
    iteration_s = 1 / sum(1 / t for t in times)
    shares = sorted((rate / sum(rates) for rate in rates), reverse=True)
    coefficient = math.sqrt((shares[0] - 1) ** 2 + sum(w * w for w in shares[1:]))
    batch = sum(rates) * iteration_s
    j = (-0.2 * batch + 2500) * math.sqrt((coefficient + 0.2) * n) / (loss - 0.5) - 900
    duration_s = max(j, 1.0) * iteration_s
    usd_per_hour = sum(k.usd_per_hour for k in workers) + SERVER_USD_PER_HOUR
    return {
        "iteration_s": iteration_s,
        "weighted_batch": batch,
        "coefficient": coefficient,
        "duration_s": duration_s,
        "cost_usd": duration_s / 3600 * usd_per_hour,
    }


@given(
    counts=st.lists(st.integers(0, 10), min_size=7, max_size=7).filter(any),
    loss=st.sampled_from([loss for loss, _ in GOALS]),
)
def test_every_fleet_has_the_figures_worked_out_by_hand(counts: list[int], loss: float) -> None:
    found = evaluated([counts], loss)

    for name, expected in by_hand(counts, loss).items():
        assert getattr(found, name)[0] == pytest.approx(expected, rel=1e-9, abs=1e-7), name


@pytest.mark.parametrize(("loss", "deadline_s"), GOALS)
def test_the_cheapest_fleet_mixes_types_where_the_model_says_so(
    loss: float, deadline_s: float
) -> None:
    triples = [
        [chosen.get(i, 0) for i in range(7)]
        for kinds in combinations(range(7), 3)
        for numbers in product(range(11), repeat=3)
        for chosen in [dict(zip(kinds, numbers, strict=True))]
        if any(numbers)
    ]
    found = evaluated(triples, loss)

    cost_usd = np.where(found.duration_s <= deadline_s, found.cost_usd, np.inf)

    assert np.isfinite(cost_usd).any() == ((loss, deadline_s) != (0.6, 4000))
    if (loss, deadline_s) in [(0.65, 3600), (0.6, 5400)]:
        assert np.count_nonzero(triples[int(cost_usd.argmin())]) > 1


def test_the_example_job_is_the_reference_problem_but_for_the_catalogs_pcie_rate() -> None:
    path = Path(__file__).parents[2] / "examples/papers/resnet110.yaml"
    written = read_job_file(path).spec.workload
    reference = problem(0.8).workload

    assert written.convergence == reference.convergence
    for kind in KINDS:
        gpu = next(t.gpu_name for t in catalog().instance_types() if t.name == kind.name)
        assert gpu is not None
        per_sample_s = written.compute[gpu].per_sample_s
        assert per_sample_s == pytest.approx(kind.compute_s / kind.batch_per_gpu)
