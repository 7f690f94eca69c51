"""What the model uses by default, read off it and compared with the figures it documents."""

from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import (
    AllreduceTuning,
    ComputeProfile,
    FixedBatch,
    ModelSize,
    Strategy,
    Workload,
)
from spotwright.perfmodel.calibration.uncalibrated_ring import UncalibratedRing
from spotwright.perfmodel.step_model import worker_class
from tests.usecases.example_job import catalog


def _ring(name: str, *, size_bytes: float = 1e8, **facts: Any) -> UncalibratedRing:
    instance_type = catalog().instance_type(name)
    workload = Workload(
        strategy=Strategy.ALLREDUCE,
        model=ModelSize(parameter_bytes=size_bytes),
        batch=FixedBatch(per_gpu_count=8),
        compute={instance_type.gpu_name or "": ComputeProfile(per_sample_s=1.0)},
        allreduce=AllreduceTuning(hop_loss=0.7, two_node_loss=0.7),  # of an older calibration
    )
    group = NodeGroup(
        role=Role.WORKER,
        instance_type=instance_type,
        node_count=1,
        gpus_per_node=instance_type.gpu_count,
        offer=None,
    )
    worker = worker_class(workload, group, catalog().gpu, NetworkRate.PEAK)
    return UncalibratedRing(workload, replace(worker, **facts))


def test_a_fast_fabric_is_used_to_four_fifths_and_loses_nothing_on_two_nodes() -> None:
    ring = _ring("p4d.24xlarge", size_bytes=3e9)

    assert ring.net_mbps == pytest.approx(0.8 * 400_000)
    assert ring.hop_loss == pytest.approx(1.5e6 / 3e9)
    assert ring.two_node_loss == pytest.approx(0.0, abs=1e-12)
    assert ring.intra_mbps == catalog().instance_type("p4d.24xlarge").nvlink_mbps


def test_other_networks_carry_one_tcp_flow_and_lose_on_two_nodes() -> None:
    ring = _ring("g4dn.12xlarge")

    assert ring.net_mbps == pytest.approx(10_000)
    assert ring.hop_loss == pytest.approx(0.015)
    assert ring.two_node_loss == pytest.approx(0.4)
    assert ring.intra_mbps == catalog().instance_type("g4dn.12xlarge").pcie_mbps


def test_a_type_without_a_network_figure_is_taken_for_one_flow() -> None:
    unknown = _ring("g4dn.12xlarge", network_mbps=None)

    assert not unknown.net_is_known
    assert unknown.net_mbps == 10_000
    assert unknown.two_node_loss == pytest.approx(0.4)
