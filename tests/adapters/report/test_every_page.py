"""What holds for every page, whatever the plan: checked on all of the extremes."""

import re
from functools import cache
from itertools import combinations, pairwise

import pytest

from spotwright.adapters.report.page import render_report
from tests.adapters.report.example_plans import CASES
from tests.adapters.report.page_tree import Node, read_page

EMS_PER_LETTER = 0.58  # on average, in the usual sans-serif fonts

every_case = pytest.mark.parametrize("case", CASES)


@cache
def html_of(case: str) -> str:
    made = CASES[case]()
    return render_report(made.job, made.plan, made.rivals)


@cache
def page_of(case: str) -> Node:
    return read_page(html_of(case))


def drawn_texts(svg: Node) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Return each text of a picture with the box it takes up, roughly."""
    size = svg.number("font-size")
    found = []
    for node in svg.all("text"):
        shown = "".join(child for child in node.children if isinstance(child, str))
        width, x, y = len(shown) * EMS_PER_LETTER * size, node.number("x"), node.number("y")
        anchor = node.attributes.get("text-anchor", "start")
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
        found.append((shown, (left, y - 0.75 * size, left + width, y + 0.2 * size)))
    return found


@every_case
def test_a_page_takes_nothing_from_outside_and_runs_nothing(case: str) -> None:
    page = page_of(case)

    for node in page.all():
        assert node.name not in {"script", "link", "img", "iframe", "object", "embed", "base"}
        for name in node.attributes:
            assert name not in {"src", "href", "xlink:href", "srcset", "style"}
            assert not name.startswith("on")
    style = page.one("style").text
    assert "url(" not in style
    assert "@import" not in style


@every_case
def test_headings_step_down_one_level_at_a_time(case: str) -> None:
    levels = [
        int(node.name[1]) for node in page_of(case).all() if re.fullmatch("h[1-6]", node.name)
    ]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@every_case
def test_every_picture_says_what_it_shows_or_is_hidden_from_readers(case: str) -> None:
    for svg in page_of(case).all("svg"):
        if svg.attributes.get("aria-hidden") != "true":
            first = svg.children[0]
            assert svg.attributes["role"] == "img"
            assert svg.attributes["aria-label"]
            assert isinstance(first, Node)
            assert first.name == "title"


@every_case
def test_texts_of_a_picture_stay_inside_it_and_apart(case: str) -> None:
    charts = list(page_of(case).all("svg", "chart"))
    assert len(charts) == 2

    for svg in charts:
        _, _, width, height = map(float, svg.attributes["viewbox"].split())
        texts = drawn_texts(svg)
        for text, (left, top, right, bottom) in texts:
            assert left >= 0, text
            assert right <= width, text
            assert top >= 0, text
            assert bottom <= height, text
        for (one, a), (other, b) in combinations(texts, 2):
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, (one, other)


@every_case
def test_every_coordinate_is_a_finite_number_inside_its_picture(case: str) -> None:
    for svg in page_of(case).all("svg", "chart"):
        _, _, width, height = map(float, svg.attributes["viewbox"].split())
        for node in svg.all():
            for names, most in (
                (("x", "x1", "x2", "cx"), width),
                (("y", "y1", "y2", "cy"), height),
            ):
                for name in names:
                    assert 0 <= float(node.attributes.get(name, 0)) <= most
            for pair in node.attributes.get("points", "").split():
                x, y = map(float, pair.split(","))
                assert 0 <= x <= width
                assert 0 <= y <= height


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
