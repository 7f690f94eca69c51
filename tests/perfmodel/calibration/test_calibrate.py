"""The report of a calibration, against one whose fit is the geometric mean of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pytest

from spotwright.domain.fleet import Fleet
from spotwright.domain.workload import ComputeProfile, StepInterval, Strategy, Workload
from spotwright.perfmodel.calibration.calibrate import calibrate
from spotwright.perfmodel.calibration.runs import Fitted, Indices, Run, Steps
from tests.perfmodel.example_clusters import host, nodes, workload


@dataclass
class MeanRows:
    """Predicts every row as the geometric mean of the rows it was fitted to."""

    runs: Sequence[Run]
    notes: Sequence[str] = ("nothing is known",)
    hardly_shown: tuple[str, ...] = ()

    def fit(self) -> Fitted:
        mean = float(np.exp(np.mean([np.log(run.step_s) for run in self.runs])))
        old = StepInterval(low_quantile=-9, high_quantile=9, base_scale=9)
        compute = {"Small": ComputeProfile(per_sample_s=mean)}
        return Fitted(
            workload(Strategy.ALLREDUCE, compute=compute, interval=old), self.hardly_shown
        )

    def steps(self, fitted: Workload) -> Steps:
        count = len(self.runs)
        return Steps(np.full(count, fitted.compute["Small"].per_sample_s), np.zeros(count))

    def take(self, index: Indices) -> Self:
        return type(self)([self.runs[i] for i in index])


def _rows(*steps_by_placement: Sequence[float], gpus: Sequence[str] = ()) -> MeanRows:
    runs: list[Run] = []
    for place, steps in enumerate(steps_by_placement):
        gpu = gpus[place] if gpus else "Small"
        fleet = Fleet(nodes=(nodes(host(gpu=gpu)),))
        for step_s in steps:
            line = len(runs) + 2
            runs.append(
                Run(line=line, fleet=fleet, batch_per_gpu=1, step_s=step_s, placement=f"{place}")
            )
    return MeanRows(runs)


def test_the_error_on_seen_rows_is_the_mean_of_their_relative_errors() -> None:
    found = calibrate(_rows([1.0, 4.0]))

    # both are predicted as 2 s: twice the one, half the other
    assert found.fit_error_fraction == pytest.approx((1.0 + 0.5) / 2)
    assert found.row_count == 2


def test_the_error_on_unseen_rows_leaves_out_whole_placements() -> None:
    found = calibrate(_rows([1.0, 1.0], [2.0], [4.0, 4.0]))

    predicted = [(2 * 4 * 4) ** (1 / 3), 4 ** (2 / 4), 2 ** (1 / 3)]
    errors = [predicted[0] / 1 - 1] * 2 + [predicted[1] / 2 - 1] + [1 - predicted[2] / 4] * 2
    assert found.unseen_error_fraction == pytest.approx(np.mean(np.abs(errors)))


def test_two_placements_are_too_few_to_leave_one_out() -> None:
    found = calibrate(_rows([1.0] * 20, [2.0] * 20))

    assert (found.unseen_error_fraction, found.coverage_fraction) == (None, None)
    assert found.workload.interval is None  # that of an older fit is not kept
    assert found.notes == (
        "nothing is known",
        "too few rows for an interval from residuals: a usual one is given",
    )


def test_a_device_that_no_other_placement_has_is_not_asked_about() -> None:
    rows = _rows([1.0], [1.0], [1.0], [50.0], gpus=["Small", "Small", "Small", "Large"])

    found = calibrate(rows)

    alone = 50 ** (1 / 3)  # what the large GPU's row makes of the other two
    assert found.unseen_error_fraction == pytest.approx(alone - 1)


def test_the_interval_and_its_coverage_come_from_rows_left_out() -> None:
    steps = np.exp(np.random.default_rng(4).normal(0, 0.1, (10, 6)))

    found = calibrate(_rows(*steps.tolist()))

    assert found.coverage_fraction is not None
    assert 0.8 < found.coverage_fraction < 1
    interval = found.workload.interval
    assert interval is not None
    assert interval.high_quantile * interval.base_scale == pytest.approx(1.645 * 0.1, rel=0.4)
    assert found.unseen_error_fraction is not None
    assert found.unseen_error_fraction > found.fit_error_fraction


def test_rows_far_from_the_fit_are_named_by_line_and_near_ones_are_not() -> None:
    steps = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.2, 3.0, 0.2]

    assert calibrate(_rows(steps)).outlier_lines == (10, 11)


def test_figures_that_the_rows_hardly_show_are_named() -> None:
    rows = replace(_rows([1.0]), hardly_shown=("the moon",))

    notes = calibrate(rows).notes

    assert any(note.endswith("stay near what was assumed: the moon") for note in notes)
