"""The picture of a simulated run says what the outcome says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.image import imread
from matplotlib.lines import Line2D

from spotwright.adapters.plots.timeline import draw_timeline, timeline_figure
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.offer import Market, Pool
from spotwright.simulator.outcome import Moment, Outcome

SPOT = Pool("g5.xlarge", "use1-az1", Market.SPOT)
ON_DEMAND = Pool("g5.xlarge", "use1-az1", Market.ON_DEMAND)
HOUR_S = 3600.0
MOMENTS = (
    Moment(0.0, {}, {SPOT: 4}, 0.0, 0.0),
    Moment(1 * HOUR_S, {SPOT: 4}, {}, 0.0, 2.0),
    Moment(5 * HOUR_S, {SPOT: 1}, {ON_DEMAND: 2}, 0.5, 10.0),
    Moment(6 * HOUR_S, {SPOT: 1, ON_DEMAND: 2}, {}, 0.6, 13.0),
    Moment(9 * HOUR_S, {SPOT: 1, ON_DEMAND: 2}, {}, 1.0, 25.0),
)


def outcome(**changes: Any) -> Outcome:
    usual: dict[str, Any] = {
        "finish_s": 9 * HOUR_S, "deadline_s": 12 * HOUR_S, "done_fraction": 1.0, "cost_usd": 25.0,
        "usd_by_pool": {}, "node_s_by_pool": {}, "moved_usd": 0.0, "losses": 3, "interruptions": 1,
        "changes": 2, "grants": 6, "end_s": 9 * HOUR_S, "moments": MOMENTS,
    }  # fmt: skip
    return Outcome(**usual | changes)


def parts(run: Outcome) -> tuple[Axes, Axes, Axes]:
    nodes, progress, spending = timeline_figure(run, title="a job: one run").axes
    return nodes, progress, spending


def points(line: Line2D) -> list[list[float]]:
    found: list[list[float]] = np.asarray(line.get_xydata()).tolist()
    return found


def band(patch: Any, hour: float) -> tuple[float, float]:
    """Return between which heights a band of nodes lies at one time."""
    assert isinstance(patch, PolyCollection)
    (path,) = patch.get_paths()
    held = [height for height in np.arange(0.25, 8, 0.5) if path.contains_point((hour, height))]
    return (min(held) - 0.25, max(held) + 0.25) if held else (0.0, 0.0)


def test_a_png_of_a_size_to_look_at_is_written(tmp_path: Path) -> None:
    file = tmp_path / "run.png"

    draw_timeline(file, outcome(), title="a job: one run")

    assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    height, width, _ = (pixels := imread(file)).shape
    assert (width, height) == (1000, 750)
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 10  # it is not empty


@pytest.mark.parametrize(
    ("hour", "spot_nodes", "on_demand_nodes"), [(0.5, 4, 0), (3.0, 4, 0), (5.5, 1, 2), (8.0, 1, 2)]
)
def test_each_pool_has_a_band_as_high_as_its_nodes(
    hour: float, spot_nodes: int, on_demand_nodes: int
) -> None:
    nodes, _, _ = parts(outcome())

    bands = dict(zip(sorted([SPOT, ON_DEMAND]), nodes.collections, strict=True))

    heights = {pool: high - low for pool, (low, high) in
               ((pool, band(patch, hour)) for pool, patch in bands.items())}  # fmt: skip
    assert heights == {SPOT: spot_nodes, ON_DEMAND: on_demand_nodes}
    assert {p: bool(patch.get_hatch()) for p, patch in bands.items()} == {
        SPOT: False,
        ON_DEMAND: True,
    }
    legend = nodes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [str(pool) for pool in bands]
    assert nodes.get_title() == "a job: one run"


def test_progress_and_spending_go_through_every_moment() -> None:
    _, progress, spending = parts(outcome())

    assert points(progress.lines[0]) == [[0, 0], [1, 0], [5, 50], [6, 60], [9, 100]]
    assert points(spending.lines[0]) == [[0, 0], [1, 2], [5, 10], [6, 13], [9, 25]]


def test_the_deadline_stands_in_every_part_and_the_even_pace_leads_to_it() -> None:
    found = parts(outcome())

    for axes in found:
        (rule,) = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert [across for across, _ in points(rule)] == [12, 12]
    (pace,) = [line for line in found[1].lines if line.get_linestyle() == ":"]
    assert points(pace) == [[0, 0], [12, 100]]


def test_a_run_without_deadline_and_without_nodes_is_drawn_all_the_same() -> None:
    nodes, progress, spending = parts(outcome(deadline_s=None, moments=()))

    assert (len(nodes.collections), len(nodes.lines)) == (0, 0)
    assert (len(progress.lines), len(spending.lines)) == (1, 1)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutsideWorldError, match=r"cannot write .*: No such file or directory"):
        draw_timeline(tmp_path / "nowhere" / "run.png", outcome(), title="a job")


def test_nodes_are_counted_in_whole_ones() -> None:
    one = (Moment(0.0, {}, {SPOT: 1}, 0.0, 0.0), Moment(HOUR_S, {SPOT: 1}, {}, 1.0, 1.0))

    nodes, _, _ = parts(outcome(moments=one))

    assert all(tick == round(tick) for tick in nodes.get_yticks())
