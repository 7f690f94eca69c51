"""Plans as tables and as JSON, whatever a planner may find."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest

from spotwright.cli.fleet_text import fleet_text
from spotwright.cli.plan_json import infeasible_json, plan_json
from spotwright.cli.plan_schema import INFEASIBLE, PLAN, PLAN_SCHEMA
from spotwright.cli.plan_view import print_plan
from spotwright.domain.errors import NoFeasibleFleetError
from spotwright.domain.fleet import Fleet
from spotwright.domain.plan import Objective, Plan, PlanStatus, SmallestChange
from spotwright.domain.units import format_usd
from spotwright.usecases.resolve_fleet import resolve_fleet
from tests.adapters.report.example_plans import CASES, full, job_of, predicted, serverless
from tests.usecases.example_job import catalog


def _shown(plan: Plan, capsys: pytest.CaptureFixture[str]) -> str:
    print_plan(plan, job_name="example")
    return capsys.readouterr().out


def _told(plan: Plan) -> Any:
    return json.loads(json.dumps(plan_json(plan, job_name="example"), allow_nan=False))


def _infeasible(*changes: SmallestChange) -> dict[str, Any]:
    error = NoFeasibleFleetError(clashes=["goal.deadline of 5 min"], changes=changes)
    observed = datetime(2026, 8, 22, tzinfo=UTC)
    return infeasible_json(
        error, job_name="example", objective=Objective.COST, catalog_time=observed
    )


@pytest.mark.parametrize("case", CASES)
def test_every_plan_is_json_that_the_schema_describes_key_by_key(case: str) -> None:
    told = _told(CASES[case]().plan)

    jsonschema.validate(told, PLAN_SCHEMA)
    assert [*told] == [*PLAN["properties"]]
    assert told["low_cost_usd"] <= told["cost_usd"] <= told["high_cost_usd"]


def test_the_schema_is_one_itself() -> None:
    jsonschema.Draft202012Validator.check_schema(PLAN_SCHEMA)


def test_no_plan_is_json_of_the_other_form_and_has_no_infinity() -> None:
    change = SmallestChange(
        limit="goal.budget", now=math.inf, proved=True, needed=47.5, text="to $47.50"
    )

    told = _infeasible(change)

    jsonschema.validate(told, PLAN_SCHEMA)
    assert [*told] == [*INFEASIBLE["properties"]]
    assert told["infeasible"] == {
        "proved": True,
        "limits": ["goal.deadline of 5 min"],
        "changes": [
            {
                "limit": "goal.budget",
                "now": None,
                "needed": 47.5,
                "proved": True,
                "text": "to $47.50",
            }
        ],
        "together": [],
    }


def test_what_a_change_of_fleet_costs_moves_the_whole_interval() -> None:
    plan = full().plan
    cost = plan.prediction.cost_usd
    assert cost is not None

    told = _told(replace(plan, cost_usd=cost.mid + 3))

    assert told["low_cost_usd"] == pytest.approx(cost.low + 3)
    assert told["high_cost_usd"] == pytest.approx(cost.high + 3)


@pytest.mark.parametrize("case", CASES)
def test_the_tables_show_cost_and_every_group_that_is_rented(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = CASES[case]().plan

    shown = _shown(plan, capsys)

    assert format_usd(plan.cost_usd) in shown
    assert f"bottleneck: {plan.prediction.bottleneck}" in shown
    for group in plan.prediction.fleet.nodes:
        assert group.offer is not None
        row = [group.role, str(group.node_count), group.instance_type.name, group.offer.zone]
        assert any(line.split()[:4] == row for line in shown.splitlines())


def test_the_tables_tell_the_proof_the_reasons_the_savings_and_the_alternatives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = full().plan

    lines = _shown(plan, capsys).splitlines()

    floor = math.floor(plan.lower_bound_usd * 100) / 100
    proof = f"no fleet that meets the goal costs less than ${floor:.2f} (gap 0.05 %)"
    assert lines[0] == f"example: optimal, proved: {proof}"
    assert [line for line in lines if line.startswith("why: ")] == [f"why: {w}" for w in plan.why]
    assert "saving: 3 h more saves $7.41 (goal.deadline)" in lines
    (row,) = [line for line in lines if line.startswith("all on-demand")]
    assert fleet_text(plan.alternatives[0].prediction.fleet) in row
    assert plan.alternatives[0].gives_up in row


def test_the_frontier_is_shown_to_those_who_asked_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = full().plan
    fastest = fleet_text(plan.frontier[0].prediction.fleet)

    assert fastest not in _shown(plan, capsys)
    assert fastest in _shown(replace(plan, objective=Objective.PARETO), capsys)


def test_a_fastest_fleet_is_proved_by_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    plan = full().plan
    bound_s = plan.prediction.duration_s.mid * 0.9

    shown = _shown(
        replace(plan, objective=Objective.TIME, lower_bound_s=bound_s, status=PlanStatus.FEASIBLE),
        capsys,
    )

    hours = math.floor(bound_s / 360) / 10
    assert shown.startswith(
        "example: feasible, the proof is not complete: "
        f"no fleet that meets the goal is faster than {hours:.1f} h (gap 10.00 %)\n"
    )


def test_functions_are_rented_by_use(capsys: pytest.CaptureFixture[str]) -> None:
    plan = serverless().plan

    shown = _shown(plan, capsys)

    assert ["worker", "8", "lambda:2048", "-", "-", "by", "use", "by", "use"] in [
        line.split() for line in shown.splitlines()
    ]
    assert _told(plan)["fleet"][0]["price_usd_per_hour"] is None


@pytest.mark.parametrize(
    ("example", "written"),
    [
        ("resnet50.yaml", "g4dn.12xlarge:2*3@use1-az6/spot + g5.xlarge@use1-az6/on-demand"),
        ("wide-resnet-asp.yaml", "g4dn.xlarge@use1-az4/spot + ps=c5n.4xlarge*2@use1-az4/on-demand"),
        ("mobilenet-serverless.yaml", "lambda:2048*8 + ps=m5.xlarge@use1-az1/on-demand"),
        ("wide-resnet-asp.yaml", "P100*4 + ps=m5.xlarge@use1-az1/on-demand"),
        ("wide-resnet-asp.yaml", "P100:2*4 + ps=m5.xlarge@use1-az1/on-demand"),
    ],
)
def test_a_fleet_is_written_so_that_it_can_be_read_again(example: str, written: str) -> None:
    assert fleet_text(resolve_fleet(written, job_of(example), catalog())) == written


def test_a_fleet_of_defaults_is_written_out_in_full() -> None:
    fleet: Fleet = predicted("resnet50.yaml", "g4dn.12xlarge").fleet

    (group,) = fleet.nodes
    assert group.offer is not None
    assert fleet_text(fleet) == str(group.offer.pool)
