"""Each way in which a fleet can differ, with counts and money worked out by hand."""

from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.offer import Market, Pool
from spotwright.domain.reconciliation import Difference, DifferenceKind
from spotwright.domain.rental import GrantedFleet, Refusal, RefusalCause
from spotwright.usecases.reconcile_fleet import reconcile_fleet
from tests.usecases.example_rental import (
    G5_ON_DEMAND,
    G5_SPOT,
    M5,
    PRICES,
    SERVERS,
    WORKERS,
    granted,
    group,
    nodes,
    wanted_fleet,
)

Kind = DifferenceKind


def only_difference(fleet: GrantedFleet, *, ceiling: float = 0.5) -> Difference:
    """Return what differs where three spot workers and a parameter server are wanted."""
    [difference] = reconcile_fleet(wanted_fleet(ceiling=ceiling), fleet, prices=PRICES).differences
    return difference


def test_what_is_granted_as_wanted_has_no_difference_and_the_planned_bill() -> None:
    found = reconcile_fleet(wanted_fleet(), granted(nodes(3), groups=(group(3),)), prices=PRICES)

    assert found.as_wanted
    assert [pool.granted_count for pool in found.pools] == [1, 3]
    assert [pool.desired_count for pool in found.pools] == [None, 3]
    assert found.planned_usd_per_hour == pytest.approx(1.4)
    assert found.billed.usd_per_hour == pytest.approx(1.4)
    assert found.billed.is_complete


@pytest.mark.parametrize(
    ("cause", "way_out"),
    [
        (RefusalCause.CAPACITY, "limits.exclude_pools"),
        (RefusalCause.QUOTA, "larger vCPU quota"),
        (RefusalCause.PRICE, "limits.max_price"),
        (RefusalCause.OTHER, "mend what the cloud names"),
    ],
)
def test_missing_nodes_are_told_in_the_words_of_the_cloud(
    cause: RefusalCause, way_out: str
) -> None:
    refused = group(3, refusal=Refusal(cause=cause, text="sorry, none left"))

    found = only_difference(granted(nodes(1), groups=(refused,)))

    assert (found.kind, found.pool_key) == (Kind.MISSING_NODES, WORKERS)
    assert found.text == "2 of 3 nodes do not run; the cloud says: sorry, none left"
    assert way_out in found.way_out


def test_a_group_that_was_told_all_and_refused_nothing_is_waited_for() -> None:
    found = only_difference(granted(nodes(2), groups=(group(3),)))

    assert found.text == "1 of 3 nodes does not run: the group has yet to start them"
    assert found.way_out.startswith("wait")


def test_workers_without_a_group_are_applied() -> None:
    found = only_difference(granted([]))

    assert found.text == "3 of 3 nodes do not run: no group keeps them"
    assert "spotwright apply" in found.way_out


def test_a_parameter_server_that_is_gone_is_applied_again() -> None:
    fleet = GrantedFleet(nodes=tuple(nodes(3)), groups=(group(3),))

    found = only_difference(fleet)

    assert (found.kind, found.pool_key) == (Kind.MISSING_NODES, SERVERS)
    assert found.text == "1 of 1 node does not run"
    assert "spotwright apply" in found.way_out


def test_the_youngest_nodes_are_the_surplus() -> None:
    workers = nodes(5)

    found = only_difference(granted(workers[::-1], groups=(group(3),)))

    assert found.kind is Kind.SURPLUS_NODES
    assert found.instance_ids == (workers[3].instance_id, workers[4].instance_id)
    assert found.text == "2 of 5 nodes too many, $0.8000/h"


def test_spot_nodes_billed_on_demand_tell_what_more_they_cost() -> None:
    fallen = nodes(2, pool=G5_ON_DEMAND)
    fleet = granted(nodes(1), *fallen, groups=(group(3),))

    found = only_difference(fleet)

    assert found.kind is Kind.ON_DEMAND_FALLBACK
    assert found.instance_ids == tuple(node.instance_id for node in fallen)
    assert "2 of 3 nodes billed on-demand" in found.text
    assert found.text.endswith("$2.00/h, $1.20/h more than spot")  # 2 x (1.0 - 0.4)
    pool = reconcile_fleet(wanted_fleet(), fleet, prices=PRICES).pools[1]
    assert (pool.granted_count, pool.missing_count) == (1, 0)
    assert pool.planned_usd_per_hour == pytest.approx(1.2)
    assert pool.billed.usd_per_hour == pytest.approx(2.4)


def test_a_fallback_is_not_hidden_by_a_wrong_type() -> None:
    fleet = granted(nodes(2), *nodes(1, pool=M5), groups=(group(3),))

    found = reconcile_fleet(wanted_fleet(), fleet, prices=PRICES).differences

    assert [d.kind for d in found] == [Kind.ON_DEMAND_FALLBACK, Kind.WRONG_TYPE]
    assert found[0].text.endswith("$0.2000/h, $0.2000/h less than spot")


def test_on_demand_nodes_that_are_spot_can_be_taken() -> None:
    server = nodes(1, key=SERVERS, pool=Pool("m5.xlarge", "use1-az4", Market.SPOT))
    fleet = GrantedFleet(nodes=(*nodes(3), *server), groups=(group(3),))

    prices = {**PRICES, server[0].pool: 0.07}
    [found] = reconcile_fleet(wanted_fleet(), fleet, prices=prices).differences

    assert found.kind is Kind.UNWANTED_SPOT
    assert "may take them back" in found.text


def test_a_node_of_another_type_is_told() -> None:
    other = Pool("g4dn.xlarge", "use1-az4", Market.SPOT)
    fleet = granted(nodes(2), *nodes(1, pool=other), groups=(group(3),))

    [found] = reconcile_fleet(wanted_fleet(), fleet, prices={**PRICES, other: 0.2}).differences

    assert found.kind is Kind.WRONG_TYPE
    assert found.text == "1 x g4dn.xlarge where g5.xlarge is wanted"


def test_a_node_in_another_zone_is_told() -> None:
    other = replace(G5_SPOT, zone="use1-az1")
    fleet = granted(nodes(2), *nodes(1, pool=other), groups=(group(3),))

    [found] = reconcile_fleet(wanted_fleet(), fleet, prices={**PRICES, other: 0.2}).differences

    assert found.kind is Kind.WRONG_ZONE
    assert found.text.startswith("1 x use1-az1 where zone use1-az4 is wanted")


def test_a_count_that_somebody_raised_is_drift() -> None:
    found = reconcile_fleet(wanted_fleet(), granted(nodes(4), groups=(group(4),)), prices=PRICES)

    assert [d.kind for d in found.differences] == [Kind.SURPLUS_NODES, Kind.DESIRED_COUNT]
    assert "told to keep 4 where the file says 3" in found.differences[1].text
    assert all("spotwright apply" in d.way_out for d in found.differences)


def test_two_groups_of_a_pool_count_together() -> None:
    found = reconcile_fleet(
        wanted_fleet(), granted(nodes(3), groups=(group(1), group(2))), prices=PRICES
    )

    assert found.as_wanted


def test_a_spot_price_above_the_ceiling_is_told_and_one_at_it_is_not() -> None:
    fleet = granted(nodes(3), groups=(group(3),))

    found = only_difference(fleet, ceiling=0.39)

    assert found.kind is Kind.PRICE_ABOVE_CEILING
    assert "$0.4000/h a node now, above the ceiling of $0.3900" in found.text
    assert reconcile_fleet(wanted_fleet(ceiling=0.4), fleet, prices=PRICES).as_wanted


@pytest.mark.parametrize("key", [None, "worker-g5-xlarge-use1-az1-spot"])
def test_nodes_of_no_pool_of_the_file_are_stray_and_in_the_bill(key: str | None) -> None:
    strays = nodes(2, key=key, pool=G5_ON_DEMAND)
    fleet = granted(nodes(3), *strays, groups=(group(3),))

    found = only_difference(fleet)

    assert (found.kind, found.pool_key) == (Kind.STRAY_NODES, key)
    assert found.instance_ids == tuple(node.instance_id for node in strays)
    assert found.text.endswith("not in the plan, $2.00/h")
    billed = reconcile_fleet(wanted_fleet(), fleet, prices=PRICES).billed
    assert billed.usd_per_hour == pytest.approx(3.4)


def test_a_group_that_keeps_strays_is_told_with_them() -> None:
    fleet = granted(nodes(3), *nodes(1, key="old"), groups=(group(3), group(1, key="old")))

    found = reconcile_fleet(wanted_fleet(), fleet, prices=PRICES).differences

    assert [d.kind for d in found] == [Kind.STRAY_NODES, Kind.STRAY_GROUP]
    assert all("terraform apply" in d.way_out for d in found)


def test_a_price_that_is_not_known_is_left_out_and_never_counted_as_nothing() -> None:
    fleet = granted(nodes(3), groups=(group(3),))

    found = reconcile_fleet(wanted_fleet(), fleet, prices={M5: 0.2})

    assert [d.kind for d in found.differences] == [Kind.PRICE_UNKNOWN]
    assert "g5.xlarge@use1-az4/spot is not known" in found.differences[0].text
    assert found.planned_usd_per_hour is None
    assert (found.billed.usd_per_hour, found.billed.is_complete) == (0.2, False)
    assert found.pools[1].billed.usd_per_hour is None


@given(wanted_count=st.integers(1, 40), running_count=st.integers(0, 40))
def test_removing_nodes_is_missing_just_them_and_adding_is_surplus(
    wanted_count: int, running_count: int
) -> None:
    fleet = granted(nodes(running_count), groups=(group(wanted_count),))

    found = reconcile_fleet(wanted_fleet(wanted_count), fleet, prices=PRICES)

    pool = found.pools[1]
    assert pool.missing_count - pool.surplus_count == wanted_count - running_count
    assert min(pool.missing_count, pool.surplus_count) == 0
    assert found.as_wanted == (wanted_count == running_count)


@given(
    drawn=st.lists(
        st.tuples(
            st.sampled_from([G5_SPOT, G5_ON_DEMAND, M5, replace(G5_SPOT, zone="use1-az1")]),
            st.sampled_from([WORKERS, SERVERS, "old", None]),
        ),
        max_size=30,
    )
)
def test_the_bill_is_the_sum_of_all_nodes_and_every_wrong_one_is_named(
    drawn: list[tuple[Pool, str | None]],
) -> None:
    running = [node for pool, key in drawn for node in nodes(1, key=key, pool=pool)]
    fleet = GrantedFleet(nodes=tuple(running), groups=())

    found = reconcile_fleet(wanted_fleet(), fleet, prices=PRICES)

    known = [PRICES[pool] for pool, _ in drawn if pool in PRICES]
    assert (found.billed.usd_per_hour or 0.0) == pytest.approx(fsum(known))
    assert found.billed.is_complete == (len(known) == len(drawn))
    right = {(G5_SPOT, WORKERS), (M5, SERVERS)}
    wrong = {n.instance_id for n in running if (n.pool, n.pool_key) not in right}
    assert wrong <= {name for difference in found.differences for name in difference.instance_ids}
