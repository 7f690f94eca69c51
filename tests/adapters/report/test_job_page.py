"""What the page of a job says and draws, on the job that lost nodes."""

import pytest

from tests.adapters.report.example_jobs import CASES
from tests.adapters.report.page_tree import Node
from tests.adapters.report.test_every_job_page import html_of_job, page_of_job


def points(node: Node) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for x, y in (p.split(",") for p in node.attributes["points"].split())
    ]


def area_px(node: Node) -> float:
    """Return the area of a polygon by the shoelace formula."""
    corners = points(node)
    pairs = zip(corners, [*corners[1:], corners[0]], strict=True)
    return abs(sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairs)) / 2


def chart(case: str, name: str) -> Node:
    svgs = page_of_job(case).all("svg", "wide")
    return next(svg for svg in svgs if svg.attributes["aria-label"].startswith(name))


@pytest.mark.parametrize("case", ["running", "huge"])
def test_the_area_of_a_pool_is_its_node_hours(case: str) -> None:
    accounts = CASES[case]().accounts
    assert accounts is not None
    svg = chart(case, "Nodes")
    areas = [area_px(node) for node in svg.all("polygon", "area")]
    granted = [pool.granted_node_hours for pool in accounts.pools if pool.granted_node_hours]

    assert len(areas) == len(granted)
    assert [a / sum(areas) for a in areas] == pytest.approx(
        [hours / sum(granted) for hours in granted], abs=2e-3
    )


def test_spot_is_cool_and_on_demand_is_warm() -> None:
    svg = chart("running", "Nodes")
    classes = {
        node.one("title").text: node.attributes["class"] for node in svg.all("polygon", "area")
    }

    assert classes == {
        "g5.xlarge in use1-az4, spot": "area spot_1",
        "g4dn.12xlarge in use1-az1, spot": "area spot_2",
        "m5.xlarge in use1-az4, on-demand": "area on_demand_1",
        "g5.xlarge in use1-az4, on-demand": "area on_demand_2",
    }


def test_events_are_marked_and_bad_ones_stand_out() -> None:
    svg = chart("running", "Nodes")
    marks = list(svg.all("polygon", "event"))

    assert sum("bad" in mark.classes for mark in marks) == 5
    assert len(marks) == 6
    assert any("aws will take w0 away" in mark.one("title").text for mark in marks)
    assert not list(chart("huge", "Nodes").all("line", "event"))


def test_the_line_of_spending_ends_at_what_was_paid() -> None:
    report = CASES["ended"]()
    assert report.accounts is not None
    svg = chart("ended", "dollars")
    (x0, y0), (_, y1) = points(svg.one("polyline", "planned"))
    start, end = points(svg.one("polyline", "measured"))[
        :: len(points(svg.one("polyline", "measured"))) - 1
    ]
    usd_per_px = 2.2 / (y0 - y1)

    assert start[0] <= x0
    assert (y0 - end[1]) * usd_per_px == pytest.approx(report.accounts.spent_usd, abs=0.02)
    assert not list(svg.all("polyline", "expected"))


def test_a_price_that_is_not_known_is_said_and_not_guessed() -> None:
    text = page_of_job("running").text

    assert "at least $20.71 spent" in text
    assert "8.9 node-hours of g5.xlarge in use1-az4 were on-demand where spot was planned." in text
    assert "so far, without 8.9 node-hours of no known price" in text


def test_a_job_that_ended_is_told_in_the_past() -> None:
    text = page_of_job("ended").text

    # Four workers at $0.50 and a server at $0.20, from a minute before the start to 100 s after it.
    paid = 2.2 * 3760 / 3600
    assert f"Reached its goal in 61.7 min for ${paid:.2f}; planned were 60.0 min and $2.20." in (
        text.replace("\N{NO-BREAK SPACE}", " ")
    )
    assert "No progress was reported yet" in page_of_job("pending").text


def test_names_are_text_and_never_markup() -> None:
    assert "a<b & 'c'" in page_of_job("pending").text
    assert "a<b" not in html_of_job("pending")
