import json
import math
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import Move, NodeState, Trigger, Weather
from spotwright.domain.steering_question import JobFacts
from spotwright.usecases.steering_memory import SteeringMemory
from spotwright.usecases.steering_notes import Asked, Carried, SteeringNotes, notes_of, notes_text

POOL = Pool("g5.xlarge", "use1-az4", Market.SPOT)
FULL = SteeringNotes(
    memory=SteeringMemory(
        time_s=1.5,
        nodes={"i-1": (POOL, NodeState.LEAVING)},
        down=frozenset({POOL}),
        cooling={POOL: 9.0},
        failures={POOL: (2, 3.5)},
        short_since={POOL: 0.0},
        weather={POOL: Weather(up_hours=1.0, losses=2)},
        capacity=Weather(down_hours=0.5, returns=1),
        drift_since_s=4.0,
        standing=frozenset({Trigger.DEADLINE_AT_RISK}),
        move=Move.WAIT,
        change_s=-math.inf,
        check_s=77.0,
        goal_per_hour=0.1,
        usd_per_hour=2.0,
        prices={POOL: 0.4},
        pace_factor=0.8,
        stands_in=True,
        shrunk=frozenset({("i-1", "1 of 2 CPUs")}),
        shrunk_share=0.9,
        left=frozenset({"i-0"}),
    ),
    facts=JobFacts(
        spot_pools=frozenset({POOL}), budget_usd=9.0, checkpoint_s=2.0, stops_as_one=True
    ),
    looks=7,
    since_unix_s=1.7e9,
    pending={Trigger.NODE_LOST: Asked(6, True), Trigger.DRIFT: Asked(7, False)},
    leaving_until={"i-1": 1.8e9},
    starting_since={"i-2": 1.7e9},
    interval_s=600.0,
    carried=Carried(
        written_plan_id="p-0",
        started_plan_id="p-1",
        applied_plan_id="p-2",
        failed_plan_id="p-1",
        failure_count=1,
        retry_unix_s=5.0,
        saved_unix_s=4.0,
        give_back_unix_s=6.0,
        is_given_back=True,
        given_up=("i-3",),
    ),
    prices_usd_per_hour={POOL: 0.5},
    unpriced=frozenset({POOL}),
    is_unseen=True,
)


def as_made(value: Any) -> set[str]:
    """Return the fields of a value and of those within it that are as they are made."""
    found = set()
    for each in fields(value):
        held = getattr(value, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if held == default:
            found.add(each.name)
        if is_dataclass(held):
            found |= {f"{each.name}.{name}" for name in as_made(held)}
    return found


def test_every_field_is_tried_with_another_value_than_it_is_made_with() -> None:
    # That no change was made yet has no finite figure, and is what JSON cannot tell.
    assert as_made(FULL) - {"memory.change_s"} == {
        "memory.capacity.losses",
        "memory.capacity.up_hours",
    }


def test_notes_come_back_as_they_were_and_are_plain_json() -> None:
    for notes in (FULL, SteeringNotes()):
        assert notes_of(notes_text(notes)) == notes
    assert "Infinity" not in notes_text(FULL)
    assert json.loads(notes_text(FULL))["memory"]["change_s"] is None


def test_a_job_without_notes_has_new_ones() -> None:
    assert notes_of("") == SteeringNotes()
