"""Step time at batches left out of the fit: predicted from the others, and measured beside them.

All batches are measured in the same rounds, so that a change of the machine's pace is no error of
the line; then the line is fitted without the batches it is asked for. The rival is the largest
batch that was seen, scaled in proportion.
"""

import time
from collections.abc import Sequence

from benchmarks.table import Row, print_rows, print_table
from spotwright.perfmodel.laws.affine_law import fit_affine
from spotwright.profiler.devices import HOST
from spotwright.profiler.find import find_subject
from spotwright.profiler.step_times import StepTimes, measure_step_times
from spotwright.profiler.training import Trainee, seed

MODELS = {
    "small CNN": ("examples/models/small_cnn.py", (8, 16, 32, 48), (24, 64)),
    "tiny transformer": ("examples/models/tiny_transformer.py", (4, 8, 16, 24), (12, 32)),
}
_TARGET = 0.05


def print_left_out(seconds: float) -> None:
    """Print each batch, and the mean error of both."""
    cells, errors, rivals = [], [], []
    for name, (path, seen, unseen) in MODELS.items():
        times = _measured(path, (*seen, *unseen), seconds)
        law = fit_affine([row for row in times.rows if row[0] in seen])
        for batch in unseen:
            measured_s, told = times.medians_s[batch], law.step_s(batch)
            rival_s = times.medians_s[max(seen)] * batch / max(seen)
            errors.append(told.mid / measured_s - 1)
            rivals.append(rival_s / measured_s - 1)
            inside = "yes" if told.low <= measured_s <= told.high else "no"
            cells.append(
                (f"{name}, {batch} from {seen}", f"{measured_s * 1e3:.1f} ms",
                 f"{told.mid * 1e3:.1f} ms", f"{errors[-1]:+.1%}", inside, f"{rivals[-1]:+.1%}")
            )  # fmt: skip
    header = ("batch", "measured", "line", "error", "in 90 % interval", "proportional")
    print_table("Step time at batches left out of the fit", header, cells)
    row = Row(
        what="mean absolute error, of the rival",
        figure=f"{_mean(errors):.1%}, {_mean(rivals):.1%}",
        target=f"<= {_TARGET:.0%}",
        is_met=_mean(errors) <= _TARGET,
    )
    print_rows("Left-out batches together", [row])


def _measured(path: str, batches: Sequence[int], seconds: float) -> StepTimes:
    seed()
    return measure_step_times(
        Trainee(find_subject(path), HOST),
        batches=batches,
        seconds=seconds,
        clock=time.perf_counter,
        progress=lambda _: None,
    )


def _mean(errors: Sequence[float]) -> float:
    return sum(map(abs, errors)) / len(errors)
