"""Seconds to write a checkpoint to a remote store.

    t = fixed_s + s_per_byte * checkpoint_bytes + s_per_tensor * tensor_count

`fixed_s` is the cost of any remote save, 1 / `s_per_byte` the rate of the upload, and each tensor
has its own entry to serialise. Coefficients are non-negative, of least squared relative error.

Where the default comes from: 60 saves of 12 models by TensorFlow 1.10 to a bucket (CM-DARE). Its
"MB" are MiB: 26.2 million fp32 parameters and their momentum are 199.9 MiB, the table says 200.01.
It lists no tensors but the size of the index file, 0.105 kB for each tensor of the network (0.100
to 0.108 in the ten models whose tensors were counted; momentum and averages are entries too). The
fit uses weight file and tensors, which is what a job knows; TensorFlow's graph file is left out.
One model left out at a time, the law errs by 6.5 % per save, where the spread of a model's own
saves is 4.0 %.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from spotwright.domain.errors import CannotFitError
from spotwright.perfmodel.laws.positive_figures import check_positive
from spotwright.perfmodel.laws.relative_fit import fit_squares, separable

INDEX_KB_PER_TENSOR = 0.105
_LAW = "checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRow:
    """One measured save."""

    checkpoint_bytes: float  # parameters and optimiser state
    tensor_count: float  # of the network
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLaw:
    """Coefficients of the law."""

    fixed_s: float
    s_per_byte: float
    s_per_tensor: float

    def seconds(self, *, checkpoint_bytes: float, tensor_count: float) -> float:
        """Return the time of one save."""
        by_size = self.s_per_byte * checkpoint_bytes + self.s_per_tensor * tensor_count
        return self.fixed_s + by_size


DEFAULT_CHECKPOINT_LAW = CheckpointLaw(fixed_s=3.24, s_per_byte=1.59e-8, s_per_tensor=3.86e-3)


def fit_checkpoint_law(rows: Sequence[CheckpointRow]) -> CheckpointLaw:
    """Fit measured saves.

    Sizes that grow in step with the tensors leave the cost per tensor at zero; saves all of one
    size leave the cost per byte there too, so that the law is about their mean.

    Raises:
        CannotFitError: there are no rows, or a figure is not positive.
    """
    if not rows:
        raise CannotFitError(_LAW, "there are no rows", way_out="measure one save or more")
    for row in rows:
        check_positive(
            _LAW,
            checkpoint_bytes=row.checkpoint_bytes,
            tensor_count=row.tensor_count,
            seconds=row.seconds,
        )
    table = np.array(sorted(astuple(row) for row in rows), dtype=np.float64)
    target = table[:, 2]
    design = np.column_stack([np.ones(len(table)), table[:, :2]])
    columns = next(n for n in (3, 2, 1) if separable(design[:, :n], target))
    found = fit_squares(design[:, :columns], target, np.zeros_like(target))
    fixed_s, s_per_byte, s_per_tensor = (float(x) for x in np.pad(found, (0, 3 - columns)))
    return CheckpointLaw(fixed_s=fixed_s, s_per_byte=s_per_byte, s_per_tensor=s_per_tensor)
