"""Pins against the other limits of the same job."""

from datetime import UTC, datetime
from typing import Any

import pytest

from spotwright.domain.job import Limits, Placement
from spotwright.domain.offer import Market, Pool
from spotwright.domain.pins import pin_clashes

G5 = Pool("g5.xlarge", "use1-az4", Market.SPOT)
G5_ELSEWHERE = Pool("g5.xlarge", "use1-az5", Market.SPOT)
T4 = Pool("g4dn.xlarge", "use1-az4", Market.ON_DEMAND)
PINS = {G5: 3, G5_ELSEWHERE: 2, T4: 1}
COOLS_DOWN = {G5: datetime(2026, 11, 16, tzinfo=UTC)}


def clashes(**limits: Any) -> list[tuple[str, str]]:
    found = pin_clashes(Limits(min_count_by_pool=PINS, **limits))
    return [(clash.pool, str(clash)) for clash in found]


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"excluded_pools": COOLS_DOWN},
        {"excluded_pools": {Pool("g5.xlarge", "use1-az4", Market.ON_DEMAND): None}},
        {"instance_types": frozenset({"g5.xlarge", "g4dn.xlarge"})},
        {"zones": frozenset({"use1-az4", "use1-az5"})},
        {"max_count_by_type": {"g5.xlarge": 5, "g4dn.xlarge": 1, "p3.2xlarge": 0}},
        {"max_count_per_pool": 3},
        {"max_nodes": 6},
        {"max_pools": 3},
        {"placement": Placement.ONE_REGION},
    ],
    ids=lambda limits: next(iter(limits), "none"),
)
def test_limits_that_leave_room_for_every_pin_clash_with_none(limits: dict[str, Any]) -> None:
    assert clashes(**limits) == []


@pytest.mark.parametrize(
    ("limits", "pool", "problem"),
    [
        ({"excluded_pools": {G5: None}}, G5, "but also in limits.exclude_pools"),
        ({"excluded_types": frozenset({"g4dn.xlarge"})}, T4,
         "but g4dn.xlarge is in limits.exclude_types"),
        ({"instance_types": frozenset({"g5.xlarge"})}, T4,
         "but g4dn.xlarge is not in limits.types"),
        ({"zones": frozenset({"use1-az4"})}, G5_ELSEWHERE, "but use1-az5 is not in limits.zones"),
        ({"markets": frozenset({Market.SPOT})}, T4, "but on-demand is not in limits.markets"),
        ({"max_count_per_pool": 2}, G5, "but 3 nodes are more than limits.max_count_per_pool, 2"),
    ],
)  # fmt: skip
def test_a_pin_that_the_limits_forbid_is_named_with_the_limit(
    limits: dict[str, Any], pool: Pool, problem: str
) -> None:
    expected = f"{pool} is pinned, {problem}; drop the pin or change that limit"

    assert clashes(**limits) == [(str(pool), expected)]


@pytest.mark.parametrize(
    ("limits", "last", "problem"),
    [
        ({"max_count_by_type": {"g5.xlarge": 4}}, G5_ELSEWHERE,
         "5 nodes are pinned, more than limits.max_count of g5.xlarge, 4; pin fewer or raise it"),
        ({"max_nodes": 5}, T4,
         "6 nodes are pinned, more than limits.max_nodes, 5; pin fewer or raise it"),
        ({"max_pools": 2}, T4,
         "3 pools are pinned, more than limits.max_pools, 2; pin fewer or raise it"),
        ({"placement": Placement.ONE_ZONE}, T4,
         "pins in use1-az4, use1-az5 need another limits.placement than one-zone"),
    ],
)  # fmt: skip
def test_pins_that_are_too_much_together_are_told_at_the_last_of_them(
    limits: dict[str, Any], last: Pool, problem: str
) -> None:
    assert clashes(**limits) == [(str(last), problem)]


def test_every_clash_is_told() -> None:
    found = clashes(max_nodes=1, max_pools=1, zones=frozenset({"use1-az1"}))

    assert len(found) == 3 + 2


def test_a_pool_whose_cool_down_is_over_is_excluded_no_more() -> None:
    limits = Limits(excluded_pools={**COOLS_DOWN, T4: None})
    during, after = (datetime(2026, 11, day, tzinfo=UTC) for day in (15, 16))

    assert [limits.excludes(G5, now=now) for now in (None, during, after)] == [True, True, False]
    assert [limits.excludes(T4, now=now) for now in (None, during, after)] == [True, True, True]
    assert not limits.excludes(G5_ELSEWHERE, now=None)
