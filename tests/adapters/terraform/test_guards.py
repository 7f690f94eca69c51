"""What `apply` refuses: another fleet's folder, and a configuration that rents something else."""

from dataclasses import replace
from pathlib import Path

import pytest

from spotwright.adapters.terraform.changes import Action, ResourceChange
from spotwright.adapters.terraform.guards import refuse_foreign_root, refuse_other_fleet
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import FunctionGroup
from spotwright.domain.rental import WantedFleet
from tests.usecases.example_rental import wanted_fleet

FLEET = wanted_fleet()
FOLDER = Path("fleet")
ADDRESSES = [
    f'module.fleet.aws_instance.this["{pool.key}/0"]'
    if pool.role == "ps"
    else f'module.fleet.aws_autoscaling_group.this["{pool.key}"]'
    for pool in FLEET.pools
]


def changes(action: Action, *, is_leftover: bool = False) -> list[ResourceChange]:
    return [
        ResourceChange(
            address=address, kind="aws_a", key=None, action=action, is_leftover=is_leftover
        )
        for address in ADDRESSES
    ]


@pytest.mark.parametrize("action", [Action.DELETE, Action.FORGET])
def test_nodes_that_would_be_given_up_are_not_taken_for_those_of_the_plan(action: Action) -> None:
    with pytest.raises(BadInputError, match=f"makes nothing for {FLEET.pools[0].key}"):
        refuse_foreign_root(FOLDER, ADDRESSES, FLEET, changes(action))


@pytest.mark.parametrize("action", [Action.CREATE, Action.UPDATE, Action.REPLACE])
def test_nodes_that_would_be_made_or_changed_are_those_of_the_plan(action: Action) -> None:
    with pytest.raises(BadInputError, match="makes nothing for"):
        refuse_foreign_root(FOLDER, [], FLEET, [])

    refuse_foreign_root(FOLDER, [], FLEET, changes(action))


def test_nodes_that_stay_are_those_of_the_plan_though_a_leftover_is_removed() -> None:
    with pytest.raises(BadInputError, match="makes nothing for"):
        refuse_foreign_root(FOLDER, ADDRESSES, FLEET, changes(Action.DELETE))

    refuse_foreign_root(FOLDER, ADDRESSES, FLEET, changes(Action.DELETE, is_leftover=True))


def test_functions_that_would_be_removed_are_missed() -> None:
    function = "module.fleet.aws_lambda_function.this"
    serverless = replace(FLEET, pools=(), functions=FunctionGroup(memory_mb=128, function_count=2))
    gone = ResourceChange(
        address=function, kind="aws_lambda_function", key=None, action=Action.DELETE
    )

    refuse_foreign_root(FOLDER, [function], serverless, [])
    with pytest.raises(BadInputError, match="makes nothing for functions"):
        refuse_foreign_root(FOLDER, [function], serverless, [gone])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(FLEET, name="bert"), "this plan is for fleet 'bert'"),
        (replace(FLEET, region="eu-west-1"), "this plan is for region 'eu-west-1'"),
        (
            replace(FLEET, functions=FunctionGroup(memory_mb=128, function_count=2)),
            "this plan is for a fleet of 'functions'",
        ),
    ],
)
def test_a_folder_keeps_its_name_region_and_kind(other: WantedFleet, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        refuse_other_fleet(FOLDER, FLEET, FLEET, other)
    refuse_other_fleet(FOLDER, FLEET, FLEET, replace(FLEET, plan_id="p-9"))
