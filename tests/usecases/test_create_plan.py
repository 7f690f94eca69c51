"""Plans of the examples that ship, and what is said where there is none."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.cli.plan_json import plan_json
from spotwright.domain.errors import NoFeasibleFleetError
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market
from spotwright.domain.plan import Plan, PlanStatus, SmallestChange
from spotwright.domain.workload import Strategy
from spotwright.planner.confidence import solve_surely
from spotwright.planner.knobs import knobs, turned
from spotwright.planner.problem import Problem, Watch
from spotwright.usecases.broken_limits import broken_limits
from spotwright.usecases.create_plan import PlanOptions, create_plan
from spotwright.usecases.list_offers import server_offers, worker_offers
from tests.usecases.example_job import catalog

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml"))
NO_VCPUS = {("g-vt", market): 0 for market in Market}
VCPUS = ["limits.max_vcpus.on-demand.g-vt", "limits.max_vcpus.spot.g-vt"]

every_example = pytest.mark.parametrize("example", NAMES)


def job_of(example: str) -> JobSpec:
    return read_job_file(EXAMPLES / example).spec


def planned(job: JobSpec) -> Plan:
    """Plan by a clock that stands still, so that nothing of the plan can come from it."""
    return create_plan(job, catalog(), options=PlanOptions(), watch=Watch(), clock=lambda: 0.0)


@cache
def plan_of(example: str) -> Plan:
    return planned(job_of(example))


def text(plan: Plan) -> str:
    return json.dumps(plan_json(plan, job_name="example"))


@every_example
def test_every_example_is_planned_with_a_proof(example: str) -> None:
    plan = plan_of(example)

    assert plan.status is PlanStatus.OPTIMAL
    assert plan.gap_fraction <= 0.001 + 1e-9


@every_example
def test_the_plan_of_every_example_keeps_its_goal_and_its_limits(example: str) -> None:
    assert broken_limits(job_of(example), plan_of(example).prediction) == []


@every_example
def test_the_same_job_has_the_same_plan_to_the_byte(example: str) -> None:
    assert text(planned(job_of(example))) == text(plan_of(example))


@pytest.mark.parametrize("example", ["resnet50.yaml", "text-cnn-bsp.yaml"])
def test_without_reasons_the_fleet_and_its_proof_are_the_same(example: str) -> None:
    options = PlanOptions(without_reasons=True)
    bare = create_plan(
        job_of(example), catalog(), options=options, watch=Watch(), clock=lambda: 0.0
    )

    assert bare == replace(plan_of(example), why=(), savings=(), alternatives=())


# ----- jobs that nothing can do


def goal(**changes: float) -> Callable[[JobSpec], JobSpec]:
    return lambda job: replace(job, goal=replace(job.goal, **changes))  # type: ignore[arg-type]


def limits(**changes: Any) -> Callable[[JobSpec], JobSpec]:
    return lambda job: replace(job, limits=replace(job.limits, **changes))


def is_possible(job: JobSpec) -> bool:
    nodes = job.workload.strategy is not Strategy.SERVERLESS
    problem = Problem(
        job=job,
        worker_offers=worker_offers(job, catalog()) if nodes else (),
        server_offers=server_offers(job, catalog()),
        gpu_facts=catalog().gpu,
    )
    found = solve_surely(problem, gap_fraction=0.5).solution  # a fleet will do, or a proof
    assert found.fleet is not None or found.complete
    return found.fleet is not None


def a_little_less(job: JobSpec, change: SmallestChange) -> float:
    """Return one less of what is counted, 1 % less of a change that is not."""
    if {knob.limit: knob.whole for knob in knobs(job)}[change.limit]:
        return change.needed - 1
    return change.now + 0.99 * (change.needed - change.now)


@pytest.mark.parametrize(
    ("example", "spoil", "alone"),
    [
        ("resnet50.yaml", goal(deadline_s=1800), ["goal.deadline", *VCPUS]),
        ("resnet50.yaml", goal(deadline_s=3600, budget_usd=20), ["goal.budget"]),
        ("resnet50.yaml", goal(deadline_s=1200, budget_usd=20), []),
        ("resnet50.yaml", limits(max_vcpus=NO_VCPUS), VCPUS),
        ("text-cnn-bsp.yaml", goal(deadline_s=600, budget_usd=0.1), []),
        ("mobilenet-serverless.yaml", limits(max_nodes=1), ["goal.deadline", "limits.max_nodes"]),
        ("wide-resnet-asp.yaml", limits(max_nodes=1), ["limits.max_nodes"]),
        ("papers/esperberto.yaml", goal(deadline_s=900), ["goal.deadline"]),
    ],
)
def test_what_is_said_to_help_helps_and_a_little_less_does_not(
    example: str, spoil: Callable[[JobSpec], JobSpec], alone: list[str]
) -> None:
    job = spoil(job_of(example))

    with pytest.raises(NoFeasibleFleetError) as refused:
        planned(job)

    changes, together = refused.value.changes, refused.value.together
    assert [change.limit for change in changes] == alone
    assert [c.limit for c in together] == ([] if alone else ["goal.deadline", "goal.budget"])
    for way_out in [[change] for change in changes] + [together] * (not alone):
        assert all(change.proved for change in way_out)
        assert is_possible(turned(job, {c.limit: c.needed for c in way_out}))
        assert not is_possible(turned(job, {c.limit: a_little_less(job, c) for c in way_out}))


def test_fleets_that_are_in_time_but_not_surely_are_no_proof_that_there_is_none() -> None:
    job = limits(
        instance_types=frozenset({"g4dn.xlarge"}), markets=frozenset({Market.SPOT}), max_nodes=13
    )(job_of("resnet50.yaml"))
    expected_s = planned(job).prediction.duration_s.mid
    hasty = goal(deadline_s=expected_s * 1.001, confidence_fraction=0.999)(job)

    with pytest.raises(NoFeasibleFleetError, match="no fleet was found that meets") as refused:
        planned(hasty)

    assert not refused.value.proved
    assert "goal.confidence is 99.9%; of the fleets tried" in str(refused.value)
    less = next(c for c in refused.value.changes if c.limit == "goal.confidence")
    later = next(c for c in refused.value.changes if c.limit == "goal.deadline")
    assert is_possible(goal(confidence_fraction=less.needed)(hasty))
    assert is_possible(turned(hasty, {later.limit: later.needed}))
