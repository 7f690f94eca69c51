"""What holds for the page of every job: checked on usual ones and on extremes."""

from functools import cache

import pytest

from spotwright.adapters.report.job_page import render_job_report
from tests.adapters.report.example_jobs import CASES
from tests.adapters.report.page_checks import (
    check_coordinates_are_inside,
    check_headings_step_down,
    check_nothing_is_from_outside,
    check_pictures_say_what_they_show,
    check_texts_stay_inside_and_apart,
)
from tests.adapters.report.page_tree import Node, read_page

every_job = pytest.mark.parametrize("case", CASES)


@cache
def html_of_job(case: str) -> str:
    return render_job_report(CASES[case]())


@cache
def page_of_job(case: str) -> Node:
    return read_page(html_of_job(case))


@every_job
def test_a_page_is_whole_and_takes_nothing_from_outside(case: str) -> None:
    page = page_of_job(case)

    check_nothing_is_from_outside(page)
    check_headings_step_down(page)
    check_pictures_say_what_they_show(page)


@every_job
def test_charts_keep_to_their_pictures_and_their_texts_are_apart(case: str) -> None:
    charts = list(page_of_job(case).all("svg", "chart"))
    accounts = CASES[case]().accounts

    assert len(charts) == (6 if accounts and accounts.timeline else 4)
    for svg in charts:
        check_texts_stay_inside_and_apart(svg)
        check_coordinates_are_inside(svg)


@every_job
def test_every_figure_of_the_report_is_on_the_page(case: str) -> None:
    tables = [node.one("caption").text for node in page_of_job(case).all("table")]

    assert "Planned against measured" in tables
    assert ("Pools, as planned and as granted" in tables) == (case != "old_daemon")
