"""What is paid for and not in a state, by hand-made fleets."""

from dataclasses import replace

import pytest

from spotwright.domain.reconciliation import DifferenceKind, Reconciliation
from spotwright.domain.rental import GrantedFleet, GrantedNode, RentedKind
from spotwright.usecases.find_unheld import find_unheld, still_rented
from spotwright.usecases.reconcile_fleet import FolderState, reconcile_fleet
from tests.usecases.example_rental import (
    G5_SPOT,
    M5,
    SERVERS,
    WORKERS,
    granted,
    group,
    nodes,
    wanted_fleet,
)

PRICES = {G5_SPOT: 0.4, M5: 0.2}


def kept_by(name: str, count: int = 3) -> list[GrantedNode]:
    return [replace(node, group_name=name) for node in nodes(count)]


def two_groups() -> GrantedFleet:
    """Return a fleet that was rented twice."""
    ours, theirs = group(3, name="g-1"), group(3, name="g-2")
    return granted(kept_by("g-1"), *kept_by("g-2"), groups=(ours, theirs))


def server_id(fleet: GrantedFleet) -> str:
    [found] = [node.instance_id for node in fleet.nodes if node.pool_key == SERVERS]
    return found


def compared(fleet: GrantedFleet, *held: str, is_cut_off: bool) -> Reconciliation:
    state = FolderState(held_ids={*held, server_id(fleet)}, is_cut_off=is_cut_off)
    return reconcile_fleet(wanted_fleet(), fleet, prices=PRICES, state=state)


def test_what_a_state_holds_is_not_told() -> None:
    fleet = granted(kept_by("g-1"), groups=(group(3, name="g-1"),))

    held = {"g-1", server_id(fleet)}

    assert find_unheld(fleet, held_ids=held, wanted=wanted_fleet()) == ()


def test_a_group_is_told_with_its_nodes_and_a_server_by_itself() -> None:
    fleet = two_groups()

    second, server = find_unheld(fleet, held_ids={"g-1"}, wanted=wanted_fleet())

    assert (second.kind, second.rental_id, second.pool_key) == (RentedKind.GROUP, "g-2", WORKERS)
    assert set(second.instance_ids) == {n.instance_id for n in fleet.nodes if n.group_name == "g-2"}
    assert (server.kind, server.rental_id) == (RentedKind.NODE, server_id(fleet))


def test_what_somebody_took_out_of_a_group_or_never_gave_a_pool_is_not_left_by_an_apply() -> None:
    strays = nodes(1, key=None)
    fleet = granted(nodes(1), *strays, groups=(group(0, key=None, name="theirs"),))

    found = find_unheld(fleet, held_ids={server_id(fleet)}, wanted=wanted_fleet())

    assert found == ()
    assert len(still_rented(fleet)) == 1 + len(fleet.nodes)  # but it is paid for


def test_nodes_whose_group_is_being_deleted_end_with_it() -> None:
    fleet = GrantedFleet(nodes=tuple(kept_by("deleted")), groups=())

    assert still_rented(fleet) == ()


def test_the_second_group_of_a_pool_is_told_by_itself_and_not_as_surplus() -> None:
    found = compared(two_groups(), "g-1", is_cut_off=False)

    [difference] = found.differences
    assert difference.kind is DifferenceKind.NOT_IN_STATE
    assert "group g-2 with 3 nodes, $1.20/h, is not in this folder's state" in difference.text
    removal = "delete-auto-scaling-group --force-delete --auto-scaling-group-name g-2"
    assert f"`aws autoscaling {removal} --region us-east-1`" in difference.way_out
    assert found.billed.usd_per_hour == pytest.approx(6 * 0.4 + 0.2)


def test_a_group_that_a_cut_off_apply_left_is_taken_in_by_the_next() -> None:
    fleet = granted(kept_by("g-1"), groups=(group(3, name="g-1"),))

    missing, left = compared(fleet, is_cut_off=True).differences

    assert missing.kind is DifferenceKind.MISSING_NODES
    assert "plain `terraform apply` would rent it twice" in missing.way_out
    assert left.kind is DifferenceKind.NOT_IN_STATE
    assert "run `spotwright apply` or `spotwright destroy`" in left.way_out


def test_a_group_whose_place_is_taken_is_not_said_to_be_taken_in() -> None:
    [difference] = compared(two_groups(), "g-1", is_cut_off=True).differences

    assert "delete-auto-scaling-group" in difference.way_out


def test_without_a_state_to_compare_with_two_groups_of_a_pool_are_told_and_how_to_tell_them() -> (
    None
):
    surplus, told = reconcile_fleet(wanted_fleet(), two_groups(), prices=PRICES).differences

    assert (surplus.kind, told.kind) == (
        DifferenceKind.SURPLUS_NODES,
        DifferenceKind.DESIRED_COUNT,
    )
    assert "2 groups (g-1, g-2) were told to keep 6 where the file says 3" in told.text
    assert surplus.way_out == told.way_out
    assert "`spotwright reconcile` without --no-drift" in told.way_out
