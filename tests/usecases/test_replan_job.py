"""What is decided comes with a plan wherever other nodes are wanted than were asked for."""

from collections.abc import Mapping
from typing import Any

import pytest

from spotwright.domain.offer import Pool
from spotwright.domain.questions import JobDocument
from spotwright.domain.steering import Move
from spotwright.domain.steering_question import Replanned, SteeringQuestion
from spotwright.usecases.replan_job import Replanner
from tests.usecases.example_job import catalog
from tests.usecases.example_job_run import after
from tests.usecases.steered_job import (
    HOUR,
    ON_DEMAND,
    OTHER_SPOT,
    RULES,
    SPOT,
    standing,
    steered_job,
)

BOTH_DOWN = frozenset({SPOT, OTHER_SPOT})


def decided(**now: Any) -> Replanned:
    job = steered_job(deadline="20h")
    question = SteeringQuestion(
        job=JobDocument(text="not read here"),
        now=standing(time_s=2 * HOUR, done_fraction=0.5, **now),
        target=None,
        deadline_s=job.goal.deadline_s,
        planned_s=10 * HOUR,
        forced=True,
        plan_id="p-1",
    )
    replanner = Replanner(job, catalog(), now=after(0))
    return replanner.decided(question, rules=RULES, clock=lambda: 0.0)


def planned_workers(found: Replanned) -> dict[Pool, int] | None:
    if found.planned is None:
        return None
    workers = found.planned.plan.prediction.fleet.workers
    return {group.offer.pool: group.node_count for group in workers if group.offer}


def test_on_demand_nodes_are_given_back_while_a_job_waits_for_spot_nodes() -> None:
    found = decided(staying={ON_DEMAND: 1}, asked={ON_DEMAND: 1}, down=BOTH_DOWN)

    assert found.steering.move is Move.WAIT
    assert planned_workers(found) == found.steering.workers == {SPOT: 1}


@pytest.mark.parametrize(
    ("staying", "asked", "move"),
    [({SPOT: 1}, {SPOT: 1}, Move.KEEP), ({}, {SPOT: 1}, Move.WAIT)],
    ids=["keep", "wait"],
)
def test_what_is_asked_for_already_is_not_planned_again(
    staying: Mapping[Pool, int], asked: Mapping[Pool, int], move: Move
) -> None:
    found = decided(staying=staying, asked=asked, down=BOTH_DOWN)

    assert found.steering.move is move
    assert found.planned is None
