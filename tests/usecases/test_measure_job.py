from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet_expression import parse
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import ComputeProfile, FixedBatch, GlobalBatch, Strategy
from spotwright.usecases.measure_job import MeasuredJob, measure_job
from spotwright.usecases.predict_fleet import predict_fleet
from tests.usecases.example_job import catalog, job, workload
from tests.usecases.test_steady_windows import host

SPEED = {name: ComputeProfile(per_sample_s=0.01) for name in ("T4", "A10G")}


def spec(strategy: Strategy, batch: Any) -> JobSpec:
    return replace(job(strategy), workload=workload(strategy, batch=batch, compute=SPEED))


def measured(asked: JobSpec, fleet: str, hosts: dict[str, tuple[str, float]]) -> MeasuredJob:
    """Measure hosts, each given its type and step, of a job planned for a fleet."""
    return measure_job(
        predict_fleet(asked, fleet, catalog()),
        asked,
        types={name: type_name for name, (type_name, _) in hosts.items()},
        steps={name: host(0, 600, step_s=step_s) for name, (_, step_s) in hosts.items()},
        resolution_s=10,
    )


def test_asynchronous_workers_have_a_rate_and_servers_are_no_workers() -> None:
    asked = spec(Strategy.ASP_PS, FixedBatch(per_gpu_count=32))
    hosts = {"a": ("g4dn.xlarge", 1.0), "b": ("g4dn.xlarge", 2.0), "ps": ("m5.xlarge", 1.0)}

    (row,) = measured(asked, "g4dn.xlarge*2 + ps=m5.xlarge*2", hosts).rows

    assert row.cluster_steps_per_s == pytest.approx(1.5)
    assert (row.configuration.fleet, row.configuration.batch_per_gpu) == ("g4dn.xlarge*2", 32)
    assert (row.configuration.ps_count, row.configuration.ps_type) == (2, "m5.xlarge")


def test_synchronous_workers_have_a_step_and_mixed_ones_one_row() -> None:
    asked = spec(Strategy.ALLREDUCE, FixedBatch(per_gpu_count=32))
    hosts = {"a": ("g4dn.xlarge", 1.5), "b": ("g5.xlarge", 1.5)}

    (row,) = measured(asked, "g4dn.xlarge + g5.xlarge", hosts).rows

    assert row.step_s == pytest.approx(1.5)
    names = {term.type_name for term in parse(row.configuration.fleet)}  # type: ignore[union-attr]
    assert names == {"g4dn.xlarge", "g5.xlarge"}


def test_a_global_batch_is_split_between_the_gpus_that_ran() -> None:
    asked = spec(Strategy.ALLREDUCE, GlobalBatch(sample_count=256))
    hosts = dict.fromkeys("ab", ("g4dn.xlarge", 1.0))

    found = measured(asked, "g4dn.xlarge*4", hosts)

    assert [row.configuration.batch_per_gpu for row in found.rows] == [128]
    assert "only one fleet was measured" in found.notes[0]


def test_workers_with_different_batches_have_no_row() -> None:
    asked = spec(Strategy.ALLREDUCE, GlobalBatch(sample_count=256))
    hosts = {"a": ("g4dn.xlarge", 1.0), "b": ("g5.xlarge", 1.0)}

    with pytest.raises(BadInputError, match="different batches"):
        measured(asked, "g4dn.xlarge + g5.xlarge", hosts)


def test_agents_of_other_types_are_not_taken_for_workers() -> None:
    asked = spec(Strategy.ALLREDUCE, FixedBatch(per_gpu_count=32))

    with pytest.raises(BadInputError, match="sent no steps yet"):
        measured(asked, "g4dn.xlarge*2", {"a": ("p3.2xlarge", 1.0)})
