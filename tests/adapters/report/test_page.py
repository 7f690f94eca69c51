"""What the page of one plan says, against the plan itself."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from spotwright.adapters.report.page import render_report
from spotwright.domain.plan import Objective, PlanStatus
from tests.adapters.report.example_plans import (
    HOSTILE,
    Case,
    bare,
    far_apart,
    full,
    hostile,
    many_groups,
    serverless,
)
from tests.adapters.report.page_tree import Node, read_page


def page(case: Case) -> Node:
    return read_page(render_report(case.job, case.plan, case.rivals))


def headline(case: Case) -> str:
    return page(case).one("p", "headline").text.replace("\N{NO-BREAK SPACE}", " ")


def table(case: Case, caption: str) -> list[list[str]]:
    """Return the texts of a table, row by row, its head first."""
    found = next(t for t in page(case).all("table") if t.one("caption").text == caption)
    return [
        [
            cell.text.replace("\N{NO-BREAK SPACE}", " ")
            for cell in row.children
            if isinstance(cell, Node)
        ]
        for row in found.all("tr")
    ]


def chart(case: Case) -> Node:
    return page(case).one("svg", "wide")


def test_the_headline_says_what_when_how_much_how_surely_and_the_proof() -> None:
    case = full()
    prediction = replace(case.plan.prediction, overall_deadline_probability=0.9312)
    plan = replace(
        case.plan,
        prediction=prediction,
        cost_usd=77.5612,
        lower_bound_usd=77.5199,
        deadline_probability=0.991,
    )

    told = headline(replace(case, plan=plan))

    hours = prediction.duration_s.mid / 3600
    assert told == (
        f"resnet50 trains 90 epochs in {hours:.1f} h, {(8 - hours) * 60:.1f} min before the "
        "deadline of 8.0 h, for $77.56, in time with a probability of 99.1 %, or 93.1 % with the "
        "model's own error counted; "
        "no fleet that meets the goal costs less than $77.51."
    )


@pytest.mark.parametrize(
    ("bound_usd", "shown"),
    [
        (61.199, "$61.19"),
        (61.20, "$61.20"),
        (0.29, "$0.2900"),
        (0.12349, "$0.1234"),
        (0, "$0.0000"),
    ],
)
def test_the_proved_bound_is_never_rounded_up(bound_usd: float, shown: str) -> None:
    case = full()
    plan = replace(case.plan, lower_bound_usd=bound_usd)

    assert headline(replace(case, plan=plan)).endswith(f"costs less than {shown}.")


def test_a_bound_on_time_is_told_as_time_and_never_rounded_up() -> None:
    case = full()
    plan = replace(case.plan, objective=Objective.TIME, lower_bound_s=13.39 * 3600 - 120)

    assert headline(replace(case, plan=plan)).endswith("is faster than 13.3 h.")


def test_without_a_deadline_the_headline_gives_the_interval_instead() -> None:
    case = bare()
    told = case.plan.prediction.duration_s

    assert "deadline" not in headline(case)
    expected = f"within {told.low / 3600:.1f} h to {told.high / 3600:.1f} h"
    assert f"with 90 % probability {expected}" in headline(case)


def test_an_unfinished_proof_and_an_impossible_goal_are_told() -> None:
    case = full()

    unfinished = headline(replace(case, plan=replace(case.plan, status=PlanStatus.FEASIBLE)))
    impossible = headline(replace(case, plan=replace(case.plan, status=PlanStatus.INFEASIBLE)))

    assert "the search ended before it could rule out 0.05 % better" in unfinished
    assert impossible.startswith("No fleet that the limits allow meets the goal; the closest")


def test_the_fleet_table_adds_up() -> None:
    rows = table(many_groups(), "What to rent")

    assert len(rows) == 1 + 12 + 1 + 1  # head, workers, parameter server, sum
    assert [row[0] for row in rows[1:-1]] == ["worker"] * 12 + ["parameter server"]
    assert int(rows[-1][1]) == sum(int(row[1]) for row in rows[1:-1])
    usd = [float(row[6].removeprefix("$")) for row in rows[1:]]
    assert usd[-1] == pytest.approx(sum(usd[:-1]), abs=0.05)


def test_functions_are_billed_by_use_and_have_no_zone() -> None:
    rows = table(serverless(), "What to rent")

    assert rows[1] == [
        "worker",
        "8",
        "Lambda, 2,048 MB",
        "\N{EN DASH}",
        "serverless",
        "by use",
        "by use",
    ]
    assert rows[-1][6].endswith("+ use")


def test_rivals_that_miss_the_goal_are_hollow() -> None:
    case = full()

    marks = list(chart(case).all("polygon", "rival"))

    assert ["hollow" in mark.classes for mark in marks] == [not r.meets_goal for r in case.rivals]
    shapes = {re.sub(r"[0-9.]", "", mark.attributes["points"]) for mark in marks}
    assert len(marks) == 6
    assert len(shapes) > 1


def test_a_rival_that_never_ends_is_in_the_table_and_not_in_the_chart() -> None:
    case = far_apart()

    assert len(list(chart(case).all("polygon", "rival"))) == len(case.rivals) - 1
    last = table(case, "What other planners would rent")[-1]
    assert last == ["endless", "not known", "", "never", "no", "diverges"]


def test_cheaper_frontier_fleets_lie_lower_and_to_the_right() -> None:
    case = full()
    svg = chart(case)

    dots = [(c.number("cx"), c.number("cy")) for c in svg.one("g", "steps").all("circle")]

    assert len(dots) == len(case.plan.frontier) > 4
    assert dots == sorted(dots)
    assert [y for _, y in dots] == sorted(y for _, y in dots)
    corners = [tuple(map(float, p.split(","))) for p in
               svg.one("polyline").attributes["points"].split()]  # fmt: skip
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(corners))


def test_an_axis_is_logarithmic_when_values_spread_over_twenty_times() -> None:
    near, far = (
        " ".join(t.text for t in chart(case).all("text")) for case in (full(), far_apart())
    )

    assert "log scale" not in near
    assert "expected cost, log scale" in far
    assert "expected time to the goal, log scale" in far


def test_the_chosen_point_has_its_intervals_as_cross_bars() -> None:
    svg = chart(full())
    point = svg.one("circle", "chosen")

    across, upright = list(svg.one("g", "crossbar").all("line"))[:2]

    assert across.number("x1") < point.number("cx") < across.number("x2")
    assert upright.number("y1") < point.number("cy") < upright.number("y2")


def test_both_probabilities_of_the_deadline_are_told() -> None:
    case = full()
    prediction = replace(case.plan.prediction, overall_deadline_probability=0.9312)
    plan = replace(case.plan, prediction=prediction, deadline_probability=0.9871)

    told = (
        page(replace(case, plan=plan)).one("dl", "figures").text.replace("\N{NO-BREAK SPACE}", " ")
    )

    assert "98.7 %" in told
    assert "93.1 %" in told
    assert "95 %" in told


def test_what_the_user_wrote_is_text_and_never_markup() -> None:
    case = hostile()
    tree = page(case)

    assert tree.one("h1").text == case.job.name
    assert next(tree.all("title")).text == f"{case.job.name}: training plan"
    assert list(tree.all("script")) == []
    assert tree.text.count(HOSTILE) > 10


def test_the_footer_says_what_the_plan_was_made_from() -> None:
    told = page(full()).one("footer").text.replace("\N{NO-BREAK SPACE}", " ")

    for fact in ("resnet50", "2026-01-12 14:05 UTC", "lowest cost", "0.05 %", "1.84 s"):
        assert fact in told
