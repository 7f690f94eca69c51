"""Oracle: DS-Analyzer's what-if, min(fetch, prep), by hand for 1,000 samples of 1 MB."""

import math

import pytest

from spotwright.domain.errors import MissingFactError
from spotwright.domain.workload import Dataset, InputPipeline, Strategy, Workload
from spotwright.perfmodel.input_pipeline import node_input_rate
from tests.perfmodel.example_clusters import fleet_of, host, model, nodes, workload

DATA = Dataset(sample_count=1000, size_bytes=1e9)


def work(pipeline: InputPipeline | None, dataset: Dataset | None = DATA) -> Workload:
    return workload(Strategy.ASP_PS, input=pipeline, dataset=dataset)


@pytest.mark.parametrize("cached", [0.0, 0.35, 1.0])
def test_fetching_mixes_memory_and_disk_by_the_cached_share(cached: float) -> None:
    memory_bytes_per_s, disk_bytes_per_s = 10e9, 0.5e9
    fetch_s = cached * 1e9 / memory_bytes_per_s + (1 - cached) * 1e9 / disk_bytes_per_s

    found = node_input_rate(work(InputPipeline(cached_fraction=cached)), host(disk_mbps=4_000))

    assert found == pytest.approx(1000 / fetch_s)


@pytest.mark.parametrize(("prep", "rate"), [(10, 80), (1000, 500)])
def test_the_slower_of_fetching_and_preparing_feeds_the_node(prep: float, rate: float) -> None:
    pipeline = InputPipeline(prep_samples_per_s_per_vcpu=prep, cached_fraction=0.0)

    assert node_input_rate(work(pipeline), host(vcpu_count=8)) == pytest.approx(rate)


def test_a_disk_rate_of_the_job_counts_before_the_types() -> None:
    pipeline = InputPipeline(cached_fraction=0.0, disk_mbps=8_000)

    assert node_input_rate(work(pipeline), host(disk_mbps=1)) == pytest.approx(1000)


def test_a_job_that_says_nothing_of_its_input_is_never_starved() -> None:
    assert node_input_rate(work(None), host()) == math.inf
    assert node_input_rate(work(InputPipeline(), None), host()) == math.inf


def test_an_unknown_disk_matters_only_when_something_is_read_from_it() -> None:
    diskless = host(disk_mbps=None)

    assert node_input_rate(work(InputPipeline()), diskless) == pytest.approx(10_000)
    with pytest.raises(MissingFactError, match=r"disk rate of g.small.*add workload.input.disk"):
        node_input_rate(work(InputPipeline(cached_fraction=0.9)), diskless)


def test_a_starved_worker_steps_as_fast_as_it_is_fed() -> None:
    starved = work(InputPipeline(prep_samples_per_s_per_vcpu=1))  # 8 samples/s, 32 per step
    asp = model(starved, [nodes(host())])

    (terms,) = asp.terms(fleet_of(2)[:, 0])

    assert asp.speed(fleet_of(2)).step_s[0, 0] == pytest.approx(4.0)
    assert terms.total_s == pytest.approx(4.0)
    assert terms.bottleneck == "input_stall"
