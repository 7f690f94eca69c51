"""Bytes between zones, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.traffic import CrossZoneTraffic
from tests.perfmodel.example_clusters import host, offered, workload

WORK = workload(Strategy.ASP_PS)
GIGABYTES = 2 * WORK.model.parameter_bytes / 1e9  # pushed and pulled in one step


def placed(group: NodeGroup, zone: str, region: str = "us-east-1") -> NodeGroup:
    assert group.offer is not None
    return replace(group, offer=replace(group.offer, zone=zone, region=region))


def dollars(workers: list[NodeGroup], servers: list[NodeGroup], work: Workload = WORK) -> float:
    """Return what 1,000 steps of every worker cost."""
    counts = np.array([[float(worker.node_count)] for worker in workers])
    traffic = CrossZoneTraffic(work, workers, servers)
    return float(traffic.usd(counts, step_s=np.ones_like(counts), work_s=np.array([1_000.0]))[0])


def test_only_workers_in_another_zone_than_their_server_pay() -> None:
    near, far = placed(offered(host(), 3), "use1-az1"), placed(offered(host(), 2), "use1-az2")
    server = placed(offered(host("m.server", None), role=Role.PS), "use1-az1")

    assert dollars([near], [server]) == 0.0
    assert dollars([near, far], [server]) == pytest.approx(2 * 1_000 * GIGABYTES * 0.02)


def test_equal_terms_of_a_fleet_pay_each_for_itself() -> None:
    far = placed(offered(host(), 2), "use1-az2")
    server = placed(offered(host("m.server", None), role=Role.PS), "use1-az1")

    assert dollars([far, far], [server]) == pytest.approx(2 * dollars([far], [server]))


def test_of_two_servers_only_the_share_in_another_zone_pays() -> None:
    worker = placed(offered(host()), "use1-az1")
    here, there = (
        placed(offered(host("m.server", None), role=Role.PS), zone)
        for zone in ("use1-az1", "use1-az2")
    )

    assert dollars([worker], [here, there]) == pytest.approx(dollars([worker], [there]) / 2)


@pytest.mark.parametrize(("zones", "crossings"), [(("a", "a"), 0), (("a", "b"), 2)])
def test_a_ring_crosses_as_often_as_it_has_zones(zones: tuple[str, str], crossings: int) -> None:
    ring = workload(Strategy.ALLREDUCE)
    groups = [placed(offered(host(), 2), zone) for zone in zones]

    found = dollars(groups, [], ring)

    gigabytes = 2 * 3 / 4 * ring.model.parameter_bytes / 1e9  # four GPUs
    assert found == pytest.approx(crossings * 1_000 * gigabytes * 0.02)


def test_an_endless_run_that_stays_in_its_zone_pays_nothing() -> None:
    workers = [placed(offered(host()), zone) for zone in ("a", "b")]
    server = placed(offered(host("m.server", None), role=Role.PS), "a")
    counts, endless_s = np.array([[1.0, 0.0], [0.0, 1.0]]), np.full(2, np.inf)

    for work, servers, expected in [
        (WORK, [server], [0.0, np.inf]),
        (workload(Strategy.ALLREDUCE), [], [0.0, 0.0]),
    ]:
        found = CrossZoneTraffic(work, workers, servers)
        usd = found.usd(counts, step_s=np.ones_like(counts), work_s=endless_s)
        assert usd.tolist() == expected
