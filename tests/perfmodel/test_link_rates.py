"""Rates that a prediction says it counts with."""

from dataclasses import replace

import pytest

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import NetworkRate
from spotwright.domain.prediction import LinkRates
from spotwright.domain.workload import AllreduceTuning, ComputeProfile, Links, Strategy
from spotwright.perfmodel.link_rates import link_rates
from spotwright.perfmodel.step_model import worker_class
from tests.perfmodel.example_clusters import workload
from tests.usecases.example_job import catalog


def rates(name: str, strategy: Strategy, *, links: Links | None = None) -> LinkRates:
    instance_type = catalog().instance_type(name)
    speed = {instance_type.gpu_name or name: ComputeProfile(per_sample_s=1.0)}
    work = workload(strategy, compute=speed)
    if links is not None:
        work = replace(work, allreduce=AllreduceTuning(links={name: links}))
    group = NodeGroup(
        role=Role.WORKER,
        instance_type=instance_type,
        node_count=1,
        gpus_per_node=instance_type.gpu_count,
        offer=None,
    )
    return link_rates(work, worker_class(work, group, catalog().gpu, NetworkRate.PEAK))


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_workers_with_servers_count_with_the_line_itself(strategy: Strategy) -> None:
    facts = catalog().instance_type("g4dn.12xlarge")

    found = rates("g4dn.12xlarge", strategy)

    assert (found.network_mbps, found.pcie_mbps) == (facts.network_peak_mbps, facts.pcie_mbps)
    assert found.nvlink_mbps is None


def test_a_ring_counts_with_one_flow_and_not_with_the_line() -> None:
    assert rates("g4dn.12xlarge", Strategy.ALLREDUCE).network_mbps == 10_000.0
    fabric = rates("p4d.24xlarge", Strategy.ALLREDUCE)
    assert fabric.network_mbps == pytest.approx(0.8 * 400_000)
    assert fabric.nvlink_mbps == catalog().instance_type("p4d.24xlarge").nvlink_mbps


def test_what_the_job_says_of_its_links_is_counted_with() -> None:
    links = Links(network_mbps=4_321.0, intra_mbps=50_000.0)

    found = rates("g4dn.12xlarge", Strategy.ALLREDUCE, links=links)

    assert (found.network_mbps, found.pcie_mbps) == (4_321.0, 50_000.0)
