"""States as `terraform state pull` tells them, and where in them something belongs."""

import json
from dataclasses import replace
from typing import Any

import pytest

from spotwright.adapters.terraform.held_state import (
    HeldState,
    free_address,
    held_part,
    read_state,
)
from spotwright.domain.errors import TerraformError
from spotwright.domain.fleet import FunctionGroup
from spotwright.domain.rental import RentedKind, UnheldRental
from tests.usecases.example_rental import SERVERS, WORKERS, wanted_fleet

NOTHING = HeldState(addresses=frozenset(), ids=frozenset())
GROUP = UnheldRental(
    kind=RentedKind.GROUP, rental_id="g-2", pool_key=WORKERS, instance_ids=("i-1",)
)
SERVER = UnheldRental(
    kind=RentedKind.NODE, rental_id="i-2", pool_key=SERVERS, instance_ids=("i-2",)
)
GROUP_ADDRESS = f'module.fleet.aws_autoscaling_group.this["{WORKERS}"]'


def resource(kind: str, *instances: dict[str, Any], **changes: Any) -> dict[str, Any]:
    usual = {"mode": "managed", "type": kind, "name": "this", "module": "module.fleet"}
    return usual | {"instances": list(instances)} | changes


def held(*addresses: str) -> HeldState:
    return HeldState(addresses=frozenset(addresses), ids=frozenset())


def test_addresses_and_ids_are_read_and_data_is_left_out() -> None:
    group = {"index_key": "w", "attributes": {"id": "g-1"}}
    replaced = {"index_key": "w", "deposed": "0a1b2c3d", "attributes": {"id": "g-0"}}
    counted = resource(
        "aws_s3_bucket", {"index_key": 0, "attributes": {"id": "b"}}, module="module.a"
    )
    data = resource("aws_vpc", {"attributes": {"id": "vpc-1"}}, mode="data")
    document = {"resources": [resource("aws_autoscaling_group", group, replaced), counted, data]}

    state = read_state(json.dumps(document))

    assert state.ids == {"g-1", "g-0", "b"}
    assert state.addresses == {
        'module.fleet.aws_autoscaling_group.this["w"]',
        "module.a.aws_s3_bucket.this[0]",
    }


def test_where_there_is_no_state_yet_nothing_is_held() -> None:
    assert read_state("") == NOTHING


@pytest.mark.parametrize("text", ["{", "[]", '{"resources": [{}]}'])
def test_what_is_no_state_is_an_error(text: str) -> None:
    with pytest.raises(TerraformError, match="the state cannot be read"):
        read_state(text)


def test_a_group_belongs_where_its_pool_is_unless_another_is_there() -> None:
    wanted = wanted_fleet()

    assert free_address(GROUP, NOTHING, wanted=wanted) == GROUP_ADDRESS
    assert free_address(GROUP, held(GROUP_ADDRESS), wanted=wanted) is None


def test_a_server_takes_the_first_number_that_is_free() -> None:
    wanted = wanted_fleet(server_count=2)
    first, second = (f'module.fleet.aws_instance.this["{SERVERS}/{n}"]' for n in (0, 1))

    assert free_address(SERVER, NOTHING, wanted=wanted) == first
    assert free_address(SERVER, held(first), wanted=wanted) == second
    assert free_address(SERVER, held(first, second), wanted=wanted) is None


def test_a_pool_that_is_no_longer_asked_for_has_no_place() -> None:
    assert free_address(GROUP, NOTHING, wanted=replace(wanted_fleet(), pools=())) is None


def test_the_module_is_the_one_that_the_state_has_the_pool_in() -> None:
    state = held(f'module.ours.module.gpu.terraform_data.shape["{WORKERS}"]')

    address = free_address(GROUP, state, wanted=wanted_fleet())

    assert address == f'module.ours.module.gpu.aws_autoscaling_group.this["{WORKERS}"]'


def test_servers_of_functions_are_in_the_module_below() -> None:
    functions = FunctionGroup(memory_mb=2560, function_count=8)

    address = free_address(SERVER, NOTHING, wanted=replace(wanted_fleet(), functions=functions))

    assert address == f'module.fleet.module.fleet.aws_instance.this["{SERVERS}/0"]'


def test_of_a_fleet_that_was_not_wholly_made_what_is_there_is_held() -> None:
    wanted = wanted_fleet(worker_count=3, server_count=2)
    servers = [f'module.fleet.aws_instance.this["{SERVERS}/{n}"]' for n in (0, 1)]

    def counts(*addresses: str) -> dict[str, int]:
        shape = f'module.fleet.terraform_data.shape["{WORKERS}"]'  # no node by itself
        return {p.key: p.node_count for p in held_part(wanted, {shape, *addresses}).pools}

    assert counts(GROUP_ADDRESS, *servers) == {WORKERS: 3, SERVERS: 2}
    assert counts(servers[1]) == {SERVERS: 1}
    assert counts(GROUP_ADDRESS) == {WORKERS: 3}
    assert counts() == {}
