"""Bytes between zones, counted by hand."""

from dataclasses import replace

import pytest

from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.traffic import cross_zone_usd
from tests.perfmodel.example_clusters import host, offered, workload

WORK = workload(Strategy.ASP_PS)
GIGABYTES = 2 * WORK.model.parameter_bytes / 1e9  # pushed and pulled in one step


def placed(group: NodeGroup, zone: str, region: str = "us-east-1") -> NodeGroup:
    assert group.offer is not None
    return replace(group, offer=replace(group.offer, zone=zone, region=region))


def dollars(workers: list[NodeGroup], servers: list[NodeGroup]) -> float:
    fleet = Fleet(nodes=(*workers, *servers))
    return cross_zone_usd(WORK, fleet, [(worker, 1_000.0) for worker in workers])


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

    found = cross_zone_usd(ring, Fleet(nodes=tuple(groups)), [(g, 1_000.0) for g in groups])

    gigabytes = 2 * 3 / 4 * ring.model.parameter_bytes / 1e9  # four GPUs
    assert found == pytest.approx(crossings * 1_000 * gigabytes * 0.02)
