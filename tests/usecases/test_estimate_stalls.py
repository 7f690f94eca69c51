"""Stalls of types that are not at hand, against predictions of the same fleets."""

from dataclasses import replace
from pathlib import Path

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.cli.sources import open_catalog
from spotwright.domain.errors import UnknownNameError
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import FixedBatch, InputPipeline
from spotwright.usecases.estimate_stalls import (
    EstimatedStalls,
    InstanceReport,
    estimate_stalls,
    rentable_types,
)
from spotwright.usecases.predict_fleet import predict_fleet

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = open_catalog(Cloud.AWS)
RESNET = read_job_file(EXAMPLES / "resnet50.yaml").spec
KIND = "g4dn.12xlarge"


def _report(job: JobSpec, name: str = KIND, *, input_bytes: float = 6e5) -> InstanceReport:
    (report,) = estimate_stalls(job, [name], SOURCE, input_bytes_per_sample=input_bytes)
    return report


def _stalls(job: JobSpec, name: str = KIND) -> EstimatedStalls:
    stalls = _report(job, name).stalls
    assert stalls
    return stalls


def _step_s(job: JobSpec, fleet: str) -> float:
    return predict_fleet(job, fleet, SOURCE).groups[0].step_s


def _unfed(job: JobSpec) -> JobSpec:
    return replace(job, workload=replace(job.workload, input=None))


def test_stalls_are_differences_of_predicted_steps() -> None:
    found, unfed = _stalls(RESNET), _unfed(RESNET)

    alone, node, nodes = (_step_s(unfed, f"{KIND}{f}") for f in (":1", "", "*2"))
    assert found.alone_s == pytest.approx(alone)
    assert found.interconnect_stall_s == pytest.approx(node - alone)
    assert found.network_stall_s == pytest.approx(nodes - node)
    assert found.interconnect_link == "pcie"
    assert found.compute_source == "measured"


def test_slow_preparation_stalls_by_what_it_takes_longer() -> None:
    slow = replace(RESNET.workload, input=InputPipeline(prep_samples_per_s_per_vcpu=2.0))

    found = _stalls(replace(RESNET, workload=slow))

    kind = SOURCE.instance_type(KIND)
    assert found.prep_stall_s == pytest.approx(
        4 * 128 / (2.0 * kind.vcpu_count) - found.node_s, rel=1e-3
    )


def test_what_memory_does_not_hold_is_fetched_from_disk() -> None:
    dataset, kind = RESNET.workload.dataset, SOURCE.instance_type("g4dn.xlarge")
    assert dataset
    assert kind.disk_mbps

    found = _stalls(RESNET, "g4dn.xlarge")

    size = dataset.size_bytes
    assert size
    cached = kind.memory_gib * 2**30 / size
    fetched = 128 * size * 8e-6 / dataset.sample_count
    fetch_s = fetched * (cached / 80_000 + (1 - cached) / kind.disk_mbps)
    assert found.cached_fraction == pytest.approx(cached)
    waited_s = max(fetch_s - found.node_s, 0.0)
    assert found.fetch_stall_s + found.prep_stall_s == pytest.approx(waited_s, abs=1e-3)


def test_the_pcie_share_is_the_copy_of_a_batch() -> None:
    kind = SOURCE.instance_type(KIND)
    found = _stalls(RESNET)

    assert kind.pcie_mbps
    assert found.pcie_fraction == pytest.approx(128 * 4.8 / kind.pcie_mbps / found.alone_s)


def test_with_servers_the_network_is_a_stall_of_one_worker_too() -> None:
    job = read_job_file(EXAMPLES / "wide-resnet-asp.yaml").spec

    found = _stalls(job, "g4dn.xlarge")

    terms = predict_fleet(_unfed(job), "g4dn.xlarge*2", SOURCE).groups[0].terms
    assert found.interconnect_stall_s == 0.0
    assert found.network_stall_s == pytest.approx(terms.network_s + terms.ps_service_s)


def test_a_batch_that_does_not_fit_says_the_figures() -> None:
    large = replace(RESNET.workload, batch=FixedBatch(per_gpu_count=1000))

    report = _report(replace(RESNET, workload=large))

    assert not report.fits
    assert report.stalls is None
    assert "a batch of 1000 needs 5" in (report.problem or "")
    assert "its GPU has 16.0 GiB" in (report.problem or "")


def test_a_model_that_only_several_gpus_hold_says_so() -> None:
    job = read_job_file(EXAMPLES / "llama-zero3.yaml").spec

    report = _report(job, "p4d.24xlarge")

    assert report.fits
    assert report.stalls is None
    assert "GiB on A100" in (report.problem or "")


def test_a_type_whose_speed_is_unknown_is_a_row_that_says_so() -> None:
    report = _report(RESNET, "g5g.xlarge")

    assert report.stalls is None
    assert "T4g" in (report.problem or "")


def test_a_type_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"g4dn\.13xlarge"):
        _report(RESNET, "g4dn.13xlarge")


def test_the_types_of_a_job_are_those_it_may_rent() -> None:
    one = replace(RESNET.limits, gpus=frozenset({"T4"}), max_nodes=1)

    names = {kind.gpu_name for kind in rentable_types(replace(RESNET, limits=one), SOURCE)}
    every = rentable_types(replace(RESNET, limits=replace(one, gpus=frozenset())), SOURCE)

    assert names == {"T4"}
    assert len(every) <= 2 * len({kind.gpu_name for kind in every})
    assert len({kind.gpu_name for kind in every}) > 10
