"""The page of a simulated run says what the outcome says."""

from dataclasses import replace

import pytest

from spotwright.adapters.report.timeline import timeline_page
from spotwright.domain.offer import Market, Pool
from spotwright.simulator.outcome import Moment, Outcome
from tests.adapters.report.page_checks import (
    check_coordinates_are_inside,
    check_headings_step_down,
    check_nothing_is_from_outside,
    check_pictures_say_what_they_show,
    check_texts_stay_inside_and_apart,
    drawn_texts,
)
from tests.adapters.report.page_tree import Node, read_page

SPOT = Pool("g5.xlarge", "use1-az1", Market.SPOT)
ON_DEMAND = Pool("g5.xlarge", "use1-az1", Market.ON_DEMAND)
HOUR_S = 3600.0
MOMENTS = (
    Moment(0.0, {}, {SPOT: 3}, 0.0, 0.0),
    Moment(1 * HOUR_S, {SPOT: 3}, {}, 0.0, 2.0),
    Moment(3 * HOUR_S, {SPOT: 3}, {}, 0.3, 6.0),  # something happened to no node
    Moment(5 * HOUR_S, {SPOT: 1}, {ON_DEMAND: 2}, 0.5, 10.0),
    Moment(9 * HOUR_S, {SPOT: 1, ON_DEMAND: 2}, {}, 1.0, 25.0),
)
RUN = Outcome(
    finish_s=9 * HOUR_S,
    deadline_s=12 * HOUR_S,
    done_fraction=1.0,
    cost_usd=25.0,
    usd_by_pool={},
    node_s_by_pool={},
    moved_usd=0.0,
    losses=2,
    interruptions=1,
    changes=2,
    grants=5,
    end_s=9 * HOUR_S,
    moments=MOMENTS,
)
RUNS = {
    "usual": RUN,
    "one node": replace(RUN, moments=(Moment(0.0, {}, {SPOT: 1}, 0.0, 0.0), MOMENTS[-1])),
    "no deadline": replace(RUN, deadline_s=None),
    "nothing came of it": replace(RUN, moments=(), cost_usd=0.0, finish_s=None),
}


def page_of(run: Outcome) -> Node:
    return read_page(timeline_page(run, title="a job <&>: one run"))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_what_holds_for_every_page_holds_for_that_of_a_run(run: Outcome) -> None:
    page = page_of(run)

    check_nothing_is_from_outside(page)
    check_headings_step_down(page)
    check_pictures_say_what_they_show(page)
    charts = list(page.all("svg", "chart"))
    assert len(charts) == 3
    for svg in charts:
        check_texts_stay_inside_and_apart(svg)
        check_coordinates_are_inside(svg)


def test_a_bar_lasts_as_long_as_its_nodes_and_is_as_high_as_they_are_many() -> None:
    nodes = next(page_of(RUN).all("svg", "chart"))
    bars = list(nodes.all("rect"))
    widths = [bar.number("width") for bar in bars]
    heights = [bar.number("height") for bar in bars]

    # Three that start, the same that train for four hours, then one beside two that start.
    hour, node = widths[0], heights[0] / 3
    assert widths == pytest.approx([hour, 4 * hour, 4 * hour, 4 * hour], rel=0.01)
    assert heights == pytest.approx([3 * node, 3 * node, node, 2 * node], rel=0.01)
    pale = [bar.number("fill-opacity") < 0.5 for bar in bars]
    assert pale == [True, False, False, True]
    assert len({bar.attributes["fill"] for bar in bars}) == 2


@pytest.mark.parametrize("name", ["usual", "one node"])
def test_heights_are_whole_nodes(name: str) -> None:
    nodes = next(page_of(RUNS[name]).all("svg", "chart"))

    told = [text for text, _ in drawn_texts(nodes) if not text.endswith("h")]

    assert told
    assert all(text.isdecimal() and int(text) > 0 for text in told)


@pytest.mark.parametrize(
    ("run", "told"),
    [(RUN, "$25.00, 2 nodes taken away, in time. Dashed: the deadline."),
     (replace(RUN, finish_s=13 * HOUR_S), "late. Dashed: the deadline."),
     (replace(RUN, deadline_s=None), "2 nodes taken away, in time.")],
)  # fmt: skip
def test_a_page_tells_how_the_run_ended(run: Outcome, told: str) -> None:
    assert next(page_of(run).all("p")).text.endswith(told)
