"""Which nodes are ended by name where a fleet gets smaller."""

from collections.abc import Sequence

import pytest

from spotwright.domain.fleet import Role
from spotwright.domain.offer import Market
from spotwright.domain.rental import GrantedFleet, WantedFleet, WantedPool
from spotwright.usecases.first_to_go import first_to_go
from tests.contracts.rented_fleets import ON_DEMAND
from tests.fakes.memory_rented_fleets import MemoryRentedFleets


def granted(**counts: int) -> GrantedFleet:
    """Return groups by pool: the first has nodes i-00000001 and so on, the next one goes on."""
    cloud = MemoryRentedFleets()
    for pool_key, count in counts.items():
        cloud.add_group("f", pool_key=pool_key, desired_count=count)
    cloud.start("f", ON_DEMAND, pool_key="server")
    return cloud.granted("f")


def wanted(**counts: int) -> WantedFleet:
    pools = tuple(
        WantedPool(
            key=key,
            role=Role.WORKER,
            instance_type="g5.xlarge",
            zone="use1-az4",
            market=Market.SPOT,
            node_count=count,
            max_price_usd_per_hour=1.0,
        )
        for key, count in counts.items()
    )
    return WantedFleet(
        name="f", plan_id="p", region="us-east-1", low_cost_usd=1.0, high_cost_usd=2.0, pools=pools
    )


def node(number: int) -> str:
    return f"i-{number:08x}"


@pytest.mark.parametrize(
    ("count", "going", "expected"),
    [
        (3, [2], []),  # it stays as large: whoever takes the node has another one come
        (2, [2], [2]),
        (2, [3, 1], [3]),  # the first ones first, no more than are too many
        (1, [3, 3, 1], [3, 1]),  # told twice, as a lost node that had a notice
        (1, [2], [2]),  # which other one goes is the cloud's choice
        (1, [9], []),  # gone already
        (1, [4], []),  # the server, which is in no group
        (4, [1], []),
    ],
)
def test_only_as_many_end_by_name_as_are_too_many(
    count: int, going: Sequence[int], expected: Sequence[int]
) -> None:
    found = first_to_go(granted(w=3), wanted(w=count), [node(number) for number in going])

    assert found == [node(number) for number in expected]


def test_each_pool_counts_by_itself() -> None:
    found = first_to_go(granted(a=2, b=2), wanted(a=2, b=1), [node(1), node(3), node(4)])

    assert found == [node(3)]


def test_a_pool_that_ends_as_a_whole_is_left_to_terraform() -> None:
    assert first_to_go(granted(a=2, b=2), wanted(b=2), [node(1)]) == []
