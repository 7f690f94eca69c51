"""The pages as a browser lays them out, at the widths of a telephone and of a screen.

A page is shown in frames of several widths; a script of the test's own, outside the page, measures
what is there and leaves its findings where `--dump-dom` prints them.
"""

import html
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.report.page_tree import read_page
from tests.adapters.report.test_every_job_page import every_job, html_of_job
from tests.adapters.report.test_every_page import every_case, html_of

WIDTHS = (360, 390, 768, 1600)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MEASURE = """
const told = [...document.querySelectorAll("iframe")].map(frame => {
  const page = frame.contentDocument;
  const svgs = [...page.querySelectorAll("svg.chart")].filter(s => s.getClientRects().length);
  const box = e => (r => [r.left, r.top, r.right, r.bottom])(e.getBoundingClientRect());
  return {
    width: page.documentElement.clientWidth,
    scroll_width: page.documentElement.scrollWidth,
    charts: svgs.map(svg => ({
      box: box(svg),
      texts: [...svg.querySelectorAll("text")].map(t => ({
        text: t.lastChild.textContent, box: box(t), px: parseFloat(getComputedStyle(t).fontSize)
          * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width})),
    })),
  };
});
document.getElementById("told").textContent = JSON.stringify(told);
"""


@pytest.fixture(scope="module")
def browser() -> str:
    # Not require_tool: the other tests check the same on the page's text, so CI may lack a browser.
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser on the PATH ({', '.join(BROWSERS)}): pages not laid out")
    return found


def laid_out(browser: str, page: str, folder: Path) -> list[Any]:
    """Return what the browser measured, frame by frame."""
    frames = "".join(
        f'<iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>'
        for width in WIDTHS
    )
    shell = folder / "shell.html"
    shell.write_text(
        f'<!DOCTYPE html><body>{frames}<pre id="told"></pre>'
        f"<script>window.onload = () => {{{MEASURE}}};</script></body>",
        encoding="utf-8",
    )
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={folder / 'profile'}", shell.as_uri()],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    start = done.stdout.index('<pre id="told">')
    end = done.stdout.index("</pre>", start)
    found: list[Any] = json.loads(read_page(done.stdout[start : end + 6]).text)
    return found


@every_case
def test_a_page_fits_its_window_and_its_chart_is_legible(
    browser: str, case: str, tmp_path: Path
) -> None:
    found = laid_out(browser, html_of(case), tmp_path)

    assert len(found) == len(WIDTHS)
    for frame in found:
        assert frame["scroll_width"] <= frame["width"]
        (chart,) = frame["charts"]
        _check_texts(chart)


@every_job
def test_a_job_page_fits_its_window_and_its_charts_are_legible(
    browser: str, case: str, tmp_path: Path
) -> None:
    found = laid_out(browser, html_of_job(case), tmp_path)

    assert len(found) == len(WIDTHS)
    for frame in found:
        assert frame["scroll_width"] <= frame["width"]
        assert len(frame["charts"]) in (2, 3)
        for chart in frame["charts"]:
            _check_texts(chart)


def _check_texts(chart: Any) -> None:
    left, top, right, bottom = chart["box"]
    texts = chart["texts"]
    assert len(texts) > 5
    for i, one in enumerate(texts):
        a = one["box"]
        assert one["px"] >= 10, one
        assert left - 1 <= a[0] <= a[2] <= right + 1, one
        assert top - 1 <= a[1] <= a[3] <= bottom + 1, one
        for other in texts[:i]:
            b = other["box"]
            apart_x, apart_y = max(a[0] - b[2], b[0] - a[2]), max(a[1] - b[3], b[1] - a[3])
            assert max(apart_x, apart_y) > -1, (one, other)
