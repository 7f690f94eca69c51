"""What rings get by default, compared with the figures that docs/model.md states."""

from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import ComputeProfile, Strategy
from spotwright.perfmodel.ring_hardware import RingHardware, ring_hardware, usual_hop_loss
from spotwright.perfmodel.step_model import worker_class
from tests.perfmodel.example_clusters import workload
from tests.usecases.example_job import catalog


def ring(name: str, **facts: Any) -> RingHardware:
    instance_type = catalog().instance_type(name)
    speed = {instance_type.gpu_name or "": ComputeProfile(per_sample_s=1.0)}
    work = workload(Strategy.ALLREDUCE, compute=speed)
    group = NodeGroup(
        role=Role.WORKER,
        instance_type=instance_type,
        node_count=1,
        gpus_per_node=instance_type.gpu_count,
        offer=None,
    )
    worker = worker_class(work, group, catalog().gpu, NetworkRate.PEAK)
    return ring_hardware(replace(worker, **facts))


def test_a_fast_fabric_is_used_to_four_fifths_and_loses_nothing_on_two_nodes() -> None:
    fabric = ring("p4d.24xlarge")

    assert fabric.network_mbps == pytest.approx(0.8 * 400_000)
    assert fabric.two_node_loss == 0.0
    assert fabric.intra_mbps == catalog().instance_type("p4d.24xlarge").nvlink_mbps


def test_other_networks_carry_one_tcp_flow_and_lose_on_two_nodes() -> None:
    tcp = ring("g4dn.12xlarge")

    assert tcp.network_mbps == 10_000
    assert tcp.two_node_loss == 0.4
    assert tcp.intra_mbps == catalog().instance_type("g4dn.12xlarge").pcie_mbps


def test_a_network_that_the_catalog_does_not_know_stays_unknown() -> None:
    unknown = ring("g4dn.12xlarge", network_mbps=None)

    assert unknown.network_mbps is None
    assert unknown.two_node_loss == 0.4


def test_large_messages_lose_less_on_each_hop() -> None:
    assert usual_hop_loss(3e9) == pytest.approx(1.5e6 / 3e9)
    assert usual_hop_loss(1e7) == 0.015
