"""Bounds of speed over boxes of asynchronous fleets, against the performance model."""

import math
from dataclasses import replace

import numpy as np
import pytest

from spotwright.domain.job import Goal, Target, TargetKind
from spotwright.domain.plan import RunningFleet
from spotwright.domain.workload import SpotdnnLoss, Strategy
from spotwright.planner.asynchronous_boxes import AsynchronousSpace
from spotwright.planner.asynchronous_rows import AsynchronousRows
from spotwright.planner.asynchronous_workers import AsynchronousWorkers
from spotwright.planner.context import Context
from spotwright.planner.pace import pace
from tests.planner.asynchronous_fleets import around, roots, single
from tests.planner.contexts import contexts
from tests.planner.dice import Dice
from tests.planner.random_problems import draw

SEEDS = range(67_000, 67_060)
BOXES = 12  # around fleets of one root
ROUNDING = 1e-9


def test_no_fleet_of_a_box_is_faster_than_its_pace() -> None:
    checked = 0
    for dice, root, fleets in roots(SEEDS):
        workers = AsynchronousWorkers(fleets.context)
        lawful = np.flatnonzero(fleets.lawful)
        for i in lawful[:BOXES].tolist():
            box = around(dice, root, fleets, i)
            bound = pace(workers, box)
            for k in np.flatnonzero(fleets.inside(box) & fleets.lawful).tolist():
                most = bound.at(fleets.steps[k], fleets.samples[k], fleets.fastest[k])

                assert most >= (1 - ROUNDING) / fleets.figures.work_s[k]
                checked += 1
    assert checked > 10_000


def test_no_fleet_is_faster_than_the_pace_of_its_root() -> None:
    for _, root, fleets in roots(SEEDS):
        bound = pace(AsynchronousWorkers(fleets.context), root)

        most = np.array(
            [
                bound.at(*fleet)
                for fleet in zip(fleets.steps, fleets.samples, fleets.fastest, strict=True)
            ]
        )

        assert (most * fleets.figures.work_s >= 1 - ROUNDING)[fleets.lawful].all()


def test_the_pace_of_a_single_point_is_that_of_its_fleet() -> None:
    checked = 0
    for _, root, fleets in roots(SEEDS):
        workers = AsynchronousWorkers(fleets.context)
        if workers.spotdnn is None:
            continue
        for i in np.flatnonzero(fleets.lawful).tolist():
            bound = pace(workers, single(root, fleets, i))

            most = bound.at(fleets.steps[i], fleets.samples[i], fleets.fastest[i])

            assert most == pytest.approx(1 / fleets.figures.work_s[i], rel=1e-6)
            checked += 1
    assert checked > 1_000


# ----- whatever the law: any batch B and share s, the other workers alike


BATCHES = (10.0, 100.0)


def drawn_law(dice: Dice) -> SpotdnnLoss:
    steps = dice.scale(10, 1e5)
    return SpotdnnLoss(
        c1=steps * dice.pick((0.0, -0.5, 0.1, 0.5)),
        c2=-steps / BATCHES[1] * dice.pick((0.0, 0.5, 0.9, 0.999)),
        c3=steps,
        c4=dice.pick((0.0, 0.1, 1.0)),
        c5=0.2,
        batch_range=BATCHES,
    )


def with_law(context: Context, law: SpotdnnLoss) -> AsynchronousWorkers:
    """Return the workers of a context as they train to a loss of 1 above the law's floor."""
    job = replace(
        context.job,
        workload=replace(context.job.workload, convergence=law),
        goal=Goal(target=Target(kind=TargetKind.LOSS, value=law.c5 + 1)),
    )
    lawful = Context(
        job, context.workers, context.servers, objective=context.objective, running=RunningFleet()
    )
    return AsynchronousWorkers(lawful)


@pytest.mark.parametrize("seed", range(200))
def test_no_batch_and_share_of_a_box_is_above_its_pace(seed: int) -> None:
    dice, (context, *_) = Dice(seed, 13), contexts(draw(Strategy.ASP_PS, SEEDS[1]))
    law, n = drawn_law(dice), dice.whole(2, context.most_workers)
    _, root = next(iter(AsynchronousSpace(context).roots(math.inf)))
    box = replace(
        root.between(batch=between(dice, *BATCHES), share=between(dice, 1 / n, 1.0)),
        n=n,
        fastest=(0.0, 1e12),
        samples=(1e-12, 1e12),
        squares=(0.0, 1e24),
    )
    bound = pace(with_law(context, law), box)

    for batch in np.linspace(*box.batch, 9).tolist():
        for share in np.linspace(*box.share, 9).tolist():
            coefficient = (1 - share) * math.sqrt(n / (n - 1))
            crowd = math.sqrt((coefficient + law.c4) * n)
            updates = max(1.0, (law.c2 * batch + law.c3) * crowd - law.c1)

            assert bound.at(1.0, batch, batch * share) >= (1 - ROUNDING) / updates


def between(dice: Dice, low: float, high: float) -> tuple[float, float]:
    ends = sorted((dice.between(low, high), dice.between(low, high)))
    return ends[0], dice.pick((ends[1], ends[1], high, ends[0]))


# ----- the fastest worker, and the queue


def test_the_leader_row_holds_at_every_theta() -> None:
    checked = 0
    for dice, root, fleets in roots(SEEDS):
        workers = AsynchronousWorkers(fleets.context)
        rows, waiting = AsynchronousRows(workers), 2 if workers.queues_at(root.n) else 0
        if workers.spotdnn is None:
            continue
        for i in range(BOXES):
            box = around(dice, root, fleets, i)
            row, most = rows.leader_row(box, dice.between(0, 1.5) * fleets.fastest.max())
            for k in np.flatnonzero(fleets.inside(box)).tolist():
                point = [*fleets.x[:, k], *[0.0] * waiting, fleets.fastest[k] / rows.unit]

                assert row @ point <= most
                checked += 1
    assert checked > 1_000


def test_no_fleet_of_a_box_steps_faster_than_a_tangent() -> None:
    checked = 0
    for dice, root, fleets in roots(SEEDS):
        workers = AsynchronousWorkers(fleets.context)
        if not workers.queues_at(root.n):
            continue
        for i in range(BOXES):
            box = around(dice, root, fleets, i)
            rates = 1 / (workers.lone_s(root.n) + box.full_wait[0])
            line = workers.tangent(box, root.n * dice.between(0.5, 1.5) * dice.pick(rates.tolist()))
            for k in np.flatnonzero(fleets.inside(box)).tolist():
                x = fleets.x[:, k]

                assert line.at(float(rates @ x), x) >= fleets.steps[k] * (1 - ROUNDING)
                checked += 1
    assert checked > 1_000
