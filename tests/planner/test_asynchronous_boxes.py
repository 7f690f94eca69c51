"""What boxes of asynchronous fleets claim, against the fleets in them."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.plan import Objective
from spotwright.planner.asynchronous_boxes import AsynchronousSpace
from spotwright.planner.asynchronous_rows import AsynchronousRows
from spotwright.planner.asynchronous_workers import AsynchronousWorkers, Box
from spotwright.planner.branch_and_bound import Relaxed
from spotwright.planner.relaxation import BoxRows
from tests.planner.asynchronous_fleets import Fleets, around, root_bounds, roots
from tests.planner.dice import Dice

Floats = NDArray[np.float64]

SEEDS = range(67_100, 67_150)
BOXES = 6  # around fleets of one root
ROUNDING = 1e-9


def test_every_fleet_that_the_law_knows_is_in_its_root() -> None:
    for _, root, fleets in roots(SEEDS):
        assert fleets.inside(root)[fleets.lawful].all()


def test_no_fleet_is_better_than_the_bound_of_its_root_by_no_solver() -> None:
    checked = 0
    for bound, fleets in root_bounds(SEEDS):
        good = np.flatnonzero(fleets.lawful)
        value = fleets.figures.cost_usd
        if fleets.context.objective is Objective.TIME:
            value = fleets.figures.duration_s
        assert (value[good] >= bound * (1 - ROUNDING)).all()
        checked += len(good)
    assert checked > 3_000


# ----- rows


def boxes_with_rows() -> Iterator[tuple[Box, BoxRows | None, Fleets, NDArray[np.intp]]]:
    """Yield boxes, their rows as they are after some other box, and which fleets are in them."""
    for dice, root, fleets in roots(SEEDS):
        rows = AsynchronousRows(AsynchronousWorkers(fleets.context))
        for i in range(BOXES):
            rows.last_batch = dice.between(float(fleets.batch.min()), float(fleets.batch.max()))
            rows.last_fastest = dice.between(0, 1.2) * float(fleets.fastest.max())
            box = around(dice, root, fleets, i)
            time_cap = fleets.figures.duration_s[i] * dice.pick((1.001, 2.0, math.inf))
            kept = fleets.inside(box) & fleets.lawful & (fleets.figures.duration_s <= time_cap)
            kept &= fleets.context.limits.allow(fleets.x)
            yield box, rows.rows(box, time_cap), fleets, np.flatnonzero(kept)


def column(box: Box, fleets: Fleets, i: int) -> Floats:
    """Return a fleet as a point of its box's program."""
    workers = AsynchronousWorkers(fleets.context)
    unit, speeds = AsynchronousRows(workers).unit, []
    if workers.queues_at(box.n):
        speeds += [fleets.steps[i], fleets.samples[i] / unit]
    if workers.spotdnn is not None:
        speeds.append(fleets.fastest[i] / unit)
    return np.append(fleets.x[:, i], speeds)


def test_no_fleet_of_a_box_breaks_its_rows() -> None:
    checked = 0
    for box, rows, fleets, inside in boxes_with_rows():
        for i in inside.tolist():
            assert rows is not None
            point = column(box, fleets, i)
            sums = rows.rows @ point
            assert (sums <= rows.high + ROUNDING).all()
            assert (sums >= rows.low - ROUNDING).all()
            assert (point <= rows.upper + ROUNDING).all()
            assert (point >= rows.lower - ROUNDING).all()
            checked += 1
    assert checked > 3_000


def test_no_fleet_of_a_box_is_cheaper_or_faster_than_its_ratios() -> None:
    for box, rows, fleets, inside in boxes_with_rows():
        for i in inside.tolist():
            assert rows is not None
            point, ratios = column(box, fleets, i), rows.ratios
            cost, cost0 = ratios.least_cost()
            usd = fleets.figures.cost_usd[i] * (1 + ROUNDING)
            assert ratios.at(point, Objective.COST) <= usd
            assert cost @ point + cost0 <= usd
            duration_s = fleets.figures.duration_s[i] * (1 + ROUNDING)
            assert ratios.at(point, Objective.TIME) <= duration_s


# ----- relaxations


def boxes_with_good_fleets() -> Iterator[tuple[Dice, Box, Fleets, int]]:
    """Yield boxes with a fleet in them that keeps goals and limits."""
    for dice, root, fleets in roots(SEEDS):
        good = np.flatnonzero(np.isfinite(fleets.context.values(fleets.x).objective))
        for i in good[:BOXES].tolist():
            yield dice, around(dice, root, fleets, i), fleets, i


def relaxed_boxes() -> Iterator[tuple[AsynchronousSpace, Box, Relaxed | None, Fleets, int]]:
    """Yield boxes asked for something just worse than a fleet of theirs, in spaces that learn."""
    spaces: dict[int, AsynchronousSpace] = {}
    for dice, box, fleets, i in boxes_with_good_fleets():
        context, value = fleets.context, worth(fleets, i)
        space = spaces.setdefault(id(context), AsynchronousSpace(context))
        target = value * dice.pick((1.0001, 1.01, 2.0, math.inf))
        most_counts = dice.pick((1, 2_000))
        yield space, box, space.relax(box, target, most_counts=most_counts), fleets, i


def worth(fleets: Fleets, i: int) -> float:
    return float(fleets.context.values(fleets.x[:, [i]]).objective[0])


def test_no_box_is_dropped_that_holds_a_better_fleet() -> None:
    checked = 0
    for _, _, relaxed, fleets, i in relaxed_boxes():
        assert relaxed is not None
        assert relaxed.bound <= worth(fleets, i) * (1 + ROUNDING)
        checked += 1
    assert checked > 300


def test_a_list_of_all_that_is_left_is_as_good_as_any_fleet_of_the_box() -> None:
    checked = 0
    for _, _, relaxed, fleets, i in relaxed_boxes():
        if relaxed is not None and relaxed.fleets is not None:
            best = fleets.context.values(relaxed.fleets).objective.min(initial=math.inf)
            assert best <= worth(fleets, i) * (1 + ROUNDING)
            checked += 1
    assert checked > 100


def test_a_better_fleet_is_in_a_part_of_its_box_or_evaluated() -> None:
    checked = 0
    for space, box, relaxed, fleets, i in relaxed_boxes():
        if relaxed is None or relaxed.fleets is not None:
            continue
        evaluated: list[list[float]] = []

        def improves(fleet: Floats, seen: list[list[float]] = evaluated) -> bool:
            seen.append(fleet.tolist())
            return False

        parts = space.split(box, relaxed, improves)

        assert any(fleets.inside(part)[i] for part in parts) or fleets.x[:, i].tolist() in evaluated
        checked += 1
    assert checked > 100
