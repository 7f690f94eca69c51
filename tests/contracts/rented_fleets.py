"""What every RentedFleets must do: the fake, and AWS as an emulator plays it.

A cloud under test has `start`, `end` and `add_group` beside the port:

    class TestMyCloud(RentedFleetsContract):
        @pytest.fixture
        def cloud(self) -> Cloud: ...
"""

from typing import Protocol
from uuid import uuid4

import pytest

from spotwright.domain.offer import Market, Pool
from spotwright.usecases.rental_ports import RentedFleets

SPOT = Pool("g5.xlarge", "use1-az4", Market.SPOT)
ON_DEMAND = Pool("m5.xlarge", "use1-az6", Market.ON_DEMAND)


class Cloud(RentedFleets, Protocol):
    """A RentedFleets in which a test can rent."""

    def start(self, fleet_name: str, pool: Pool, *, pool_key: str | None) -> str: ...

    def end(self, instance_id: str) -> None: ...

    def add_group(self, fleet_name: str, *, pool_key: str | None, desired_count: int) -> None: ...


@pytest.fixture
def fleet() -> str:
    """Return a name that no other test has taken: an emulator is shared."""
    return f"fleet-{uuid4().hex[:8]}"


def ids(cloud: Cloud, fleet: str) -> list[str]:
    return [node.instance_id for node in cloud.granted(fleet).nodes]


class RentedFleetsContract:
    def test_a_name_under_which_nothing_runs_has_nothing(self, cloud: Cloud, fleet: str) -> None:
        granted = cloud.granted(fleet)

        assert (granted.nodes, granted.groups) == ((), ())

    def test_nodes_are_told_with_type_zone_market_and_pool(self, cloud: Cloud, fleet: str) -> None:
        worker = cloud.start(fleet, SPOT, pool_key="w")
        server = cloud.start(fleet, ON_DEMAND, pool_key="s")

        nodes = {node.instance_id: node for node in cloud.granted(fleet).nodes}

        assert {key: node.pool for key, node in nodes.items()} == {worker: SPOT, server: ON_DEMAND}
        assert (nodes[worker].pool_key, nodes[server].pool_key) == ("w", "s")
        assert all(node.launch_time.tzinfo for node in nodes.values())

    def test_nodes_come_by_id_and_groups_by_pool(self, cloud: Cloud, fleet: str) -> None:
        started = [cloud.start(fleet, SPOT, pool_key=None) for _ in range(5)]
        for key in ("b", "a"):
            cloud.add_group(fleet, pool_key=key, desired_count=0)

        granted = cloud.granted(fleet)

        assert [node.instance_id for node in granted.nodes] == sorted(started)
        assert [group.pool_key for group in granted.groups] == ["a", "b"]

    def test_a_node_that_has_ended_is_not_granted(self, cloud: Cloud, fleet: str) -> None:
        ended, kept = (cloud.start(fleet, SPOT, pool_key="w") for _ in range(2))
        cloud.end(ended)

        assert [node.instance_id for node in cloud.granted(fleet).nodes] == [kept]

    def test_a_fleet_beside_it_is_not_told(self, cloud: Cloud, fleet: str) -> None:
        cloud.start(f"{fleet}-2", SPOT, pool_key="w")
        cloud.add_group(f"{fleet}-2", pool_key="w", desired_count=0)
        ours = cloud.start(fleet, SPOT, pool_key="w")

        granted = cloud.granted(fleet)

        assert [node.instance_id for node in granted.nodes] == [ours]
        assert granted.groups == ()

    def test_what_has_no_pool_tag_has_no_pool(self, cloud: Cloud, fleet: str) -> None:
        cloud.start(fleet, SPOT, pool_key=None)
        cloud.add_group(fleet, pool_key=None, desired_count=0)

        granted = cloud.granted(fleet)

        assert [node.pool_key for node in granted.nodes] == [None]
        assert [group.pool_key for group in granted.groups] == [None]

    def test_a_node_that_is_ended_leaves_its_group_smaller_and_the_others_alone(
        self, cloud: Cloud, fleet: str
    ) -> None:
        cloud.add_group(fleet, pool_key="w", desired_count=3)
        first, goes, last = ids(cloud, fleet)

        cloud.end_node(goes, is_replaced=False)

        assert ids(cloud, fleet) == [first, last]
        assert [group.desired_count for group in cloud.granted(fleet).groups] == [2]

    def test_a_node_that_is_ended_to_be_replaced_has_another_one_come(
        self, cloud: Cloud, fleet: str
    ) -> None:
        cloud.add_group(fleet, pool_key="w", desired_count=2)
        goes, stays = ids(cloud, fleet)

        cloud.end_node(goes, is_replaced=True)

        after = ids(cloud, fleet)
        assert stays in after
        assert goes not in after
        assert len(after) == 2
        assert [group.desired_count for group in cloud.granted(fleet).groups] == [2]

    def test_only_spot_pools_that_are_asked_about_have_a_spot_price(self, cloud: Cloud) -> None:
        nowhere = Pool("g5.xlarge", "usw2-az1", Market.SPOT)

        prices = cloud.spot_prices_usd_per_hour([SPOT, ON_DEMAND, nowhere])

        assert set(prices) == {SPOT}
        assert prices[SPOT] > 0
        assert cloud.spot_prices_usd_per_hour([]) == {}
