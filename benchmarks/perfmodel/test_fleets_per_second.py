"""How many fleets a search can evaluate per second on one core.

Seven instance types, up to ten of each (the synthetic reference problem in the shape of spotDNN),
with the loss law, interruptions, memory, traffic and cost. Targets: 3,000,000 fleets/s with
spotDNN's contention formula, 150,000 with the queueing network. They are printed beside what was
found and not asserted: the figure depends on the machine. On two shared virtual cores (Xeon, Python
3.11, numpy 2) they were 7.5 and 1.7 million per second of process CPU time on demand, 6.5 and 1.6
million where every other type and the server are on spot.
"""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.fleet import Fleet
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import Contention
from spotwright.perfmodel.fleets import FleetEvaluator, FleetFigures
from spotwright.perfmodel.predict import predict
from spotwright.perfmodel.step_model import worker_class
from spotwright.usecases.resolve_fleet import resolve_fleet

JOB_FILE = Path(__file__).parents[2] / "examples/papers/resnet110.yaml"
TYPES = ["p3.2xlarge", "p2.8xlarge", "g4dn.12xlarge", "g4dn.4xlarge", "g3.16xlarge", "g3.8xlarge",
         "g3.4xlarge"]  # fmt: skip
MARKETS = {
    "on-demand": " + ".join(TYPES),
    "mixed": " + ".join(f"{name}/spot" if i % 2 else name for i, name in enumerate(TYPES))
    + " + ps=m5.xlarge/spot",
}
TARGETS_PER_S = {Contention.SPOTDNN: 3_000_000, Contention.QUEUEING: 150_000}


def reference_job(contention: Contention) -> JobSpec:
    job = read_job_file(JOB_FILE).spec
    assert job.workload.parameter_serving is not None
    serving = replace(job.workload.parameter_serving, contention=contention)
    return replace(job, workload=replace(job.workload, parameter_serving=serving))


def random_fleets(count: int) -> NDArray[np.float64]:
    fleets = np.random.default_rng(7).integers(0, 11, (len(TYPES), count)).astype(np.float64)
    fleets[0] += fleets.sum(axis=0) == 0
    return fleets


def chosen(fleet: Fleet, counts: NDArray[np.float64]) -> Fleet:
    groups = [
        replace(group, node_count=int(n))
        for group, n in zip(fleet.workers, counts, strict=True)
        if n
    ]
    return Fleet(nodes=(*groups, *fleet.servers))


@pytest.mark.parametrize("markets", MARKETS)
@pytest.mark.parametrize(
    ("contention", "count"), [(Contention.SPOTDNN, 500_000), (Contention.QUEUEING, 100_000)]
)
def test_fleets_per_second(
    benchmark: BenchmarkFixture,
    capsys: pytest.CaptureFixture[str],
    contention: Contention,
    count: int,
    markets: str,
) -> None:
    catalog, job = Catalog(load_snapshot(bundled_path(Cloud.AWS))), reference_job(contention)
    fleet, counts = resolve_fleet(MARKETS[markets], job, catalog), random_fleets(count)
    workers = [
        worker_class(job.workload, g, catalog.gpu, job.limits.network) for g in fleet.workers
    ]
    evaluator = FleetEvaluator(job, workers, fleet.servers, most_workers=70)
    cpu_s: list[float] = []

    def timed() -> FleetFigures:
        start = time.process_time()
        figures = evaluator.evaluate(counts)
        cpu_s.append(time.process_time() - start)
        return figures

    found = benchmark.pedantic(timed, rounds=7, warmup_rounds=1)

    benchmark.extra_info["fleets_per_cpu_s"] = fleets_per_s = round(count / min(cpu_s))
    with capsys.disabled():
        found_at = f"{contention}, {markets}: {fleets_per_s:,} fleets per CPU second"
        print(f"\n{found_at} (target {TARGETS_PER_S[contention]:,})")
    for i in (0, count // 2, count - 1):
        one = predict(job, chosen(fleet, counts[:, i]), catalog.gpu)
        assert one.cost_usd is not None
        assert found.cost_usd[i] == pytest.approx(one.cost_usd.mid)
