"""What holds for every page, whatever the plan: checked on all of the extremes."""

from functools import cache

import pytest

from spotwright.adapters.report.page import render_report
from tests.adapters.report.example_plans import CASES
from tests.adapters.report.page_checks import (
    check_coordinates_are_inside,
    check_headings_step_down,
    check_nothing_is_from_outside,
    check_pictures_say_what_they_show,
    check_texts_stay_inside_and_apart,
    drawn_texts,
)
from tests.adapters.report.page_tree import Node, read_page

every_case = pytest.mark.parametrize("case", CASES)


@cache
def html_of(case: str) -> str:
    made = CASES[case]()
    return render_report(made.job, made.plan, made.rivals)


@cache
def page_of(case: str) -> Node:
    return read_page(html_of(case))


@every_case
def test_a_page_takes_nothing_from_outside_and_runs_nothing(case: str) -> None:
    check_nothing_is_from_outside(page_of(case))


@every_case
def test_headings_step_down_one_level_at_a_time(case: str) -> None:
    check_headings_step_down(page_of(case))


@every_case
def test_every_picture_says_what_it_shows_or_is_hidden_from_readers(case: str) -> None:
    check_pictures_say_what_they_show(page_of(case))


@every_case
def test_texts_of_a_picture_stay_inside_it_and_apart(case: str) -> None:
    charts = list(page_of(case).all("svg", "chart"))
    assert len(charts) == 2

    for svg in charts:
        check_texts_stay_inside_and_apart(svg)


@every_case
def test_every_coordinate_is_a_finite_number_inside_its_picture(case: str) -> None:
    for svg in page_of(case).all("svg", "chart"):
        check_coordinates_are_inside(svg)


@every_case
def test_the_plan_its_deadline_and_its_budget_are_always_labelled(case: str) -> None:
    goal = CASES[case]().job.goal

    for svg in page_of(case).all("svg", "chart"):
        texts = [text for text, _ in drawn_texts(svg)]
        assert "this plan" in texts
        assert any(t.startswith("deadline ") for t in texts) == (goal.deadline_s is not None)
        assert any(t.startswith("budget $") for t in texts) == (goal.budget_usd is not None)


@every_case
def test_parts_of_step_bars_are_as_long_as_their_seconds(case: str) -> None:
    groups = CASES[case]().plan.prediction.groups
    longest_s = max(group.step_s for group in groups)

    bars = [step.one("svg") for step in page_of(case).all("div", "step")]

    assert len(bars) == len(groups)
    for bar, group in zip(bars, groups, strict=True):
        width = sum(part.number("width") for part in bar.all("rect"))
        assert width / 1000 == pytest.approx(group.step_s / longest_s, abs=1e-3)
        for part in bar.all("rect"):
            (term,) = part.classes - {"part"}
            seconds = group.terms.by_name()[term]
            assert part.number("width") / 1000 == pytest.approx(seconds / longest_s, abs=1e-3)
