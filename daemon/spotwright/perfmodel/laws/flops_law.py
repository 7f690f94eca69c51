"""Step time of a model never measured, from its operations: one GPU type, one worker, one server.

With g = flops_per_sample, b = batch and N = tensor_count: operations per layer grow as its width
squared and activations as its width, so a step computes G = b g and moves A = b sqrt(g N). Kernel
launches cost by the tensor. Four forms, each a limit of what a worker does:

    t = K + n N + k G             launches and arithmetic
    t = K + c + n N + k G         and a fixed cost
    t = K + m A                   memory traffic
    t = K + c + m A               and a fixed cost

K = known_s is the time for which a step occupies the parameter servers, zero where none take part.
Coefficients are non-negative, fitted by least squared relative error. The prediction is the
geometric mean of the forms; no single form is best on both GPUs measured.

Few models bear fewer forms: two those of at most two coefficients, and one alone only t = K + k G,
the worker's time proportional to its operations. `relative_sd` is the root mean square of
log(predicted / measured), one model left out at a time; with fewer than four models never less than
what so few gave on the 22 published rows.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import CannotFitError
from spotwright.perfmodel.laws.positive_figures import check_positive
from spotwright.perfmodel.laws.relative_fit import fit_squares

Floats = NDArray[np.float64]

_LAW = "FLOPs"
_FORMS = ("NG", "1NG", "A", "1A")  # letters name the columns
_FORMS_OF_FEW = {1: ("G",), 2: ("NG", "A", "1A")}
_SD_OF_FEW = {1: 0.55, 2: 0.16, 3: 0.14}  # CM-DARE, every subset of 11 models, K80 and P100


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of a model before it runs."""

    flops_per_sample: float
    batch: float
    tensor_count: float
    known_s: float = 0.0  # of its step: service of the parameter servers


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsLaw:
    """Fitted forms of one GPU type."""

    coefficients: tuple[tuple[str, tuple[float, ...]], ...]  # by form
    model_count: int
    relative_sd: float

    @property
    def basis(self) -> str:
        """What the law rests on, in words."""
        if self.model_count == 1:
            return "one model: worker time proportional to FLOPs"
        return f"{self.model_count} models: mean of {len(self.coefficients)} forms"

    def step_s(self, facts: ModelFacts) -> float:
        """Return the step time of a model."""
        return math.exp(math.fsum(np.log(self.forms_s(facts))) / len(self.coefficients))

    def forms_s(self, facts: ModelFacts) -> tuple[float, ...]:
        """Return what each form says; their spread is the law's own doubt."""
        table = np.array([astuple(facts)])
        return tuple(
            facts.known_s + float((_columns(form, table) @ np.array(x))[0])
            for form, x in self.coefficients
        )


def fit_flops_law(points: Sequence[tuple[ModelFacts, float]]) -> FlopsLaw:
    """Fit models and their measured step seconds, all on one GPU type.

    Rows of equal tensors and FLOPs are one model, whatever its batch.

    Raises:
        CannotFitError: there are no points, a figure is not positive, or a step is no longer than
            the servers' part of it.
    """
    table = _table(points)
    models = _model_numbers(table)
    count = int(models.max()) + 1
    left_out = [_left_out_logs(table, models == m) for m in range(count if count > 1 else 0)]
    measured_sd = math.sqrt(float(np.mean(np.concatenate(left_out) ** 2))) if left_out else 0.0
    return _law(table, relative_sd=max(measured_sd, _SD_OF_FEW.get(count, 0.0)))


def _table(points: Sequence[tuple[ModelFacts, float]]) -> Floats:
    """Return checked rows as columns FLOPs, batch, tensors, servers' time, step."""
    if not points:
        raise CannotFitError(_LAW, "there are no rows", way_out="measure one model or more")
    for facts, step_s in points:
        check_positive(
            _LAW,
            step_s=step_s,
            flops_per_sample=facts.flops_per_sample,
            batch=facts.batch,
            tensor_count=facts.tensor_count,
        )
        if not 0 <= facts.known_s < step_s:
            raise CannotFitError(
                _LAW,
                f"a step took {step_s:.4g} s, less than the {facts.known_s:.4g} s of its server",
                way_out="give the servers' own time, or 0 where none took part",
            )
    return np.array(sorted((*astuple(facts), step_s) for facts, step_s in points))


def _law(table: Floats, *, relative_sd: float) -> FlopsLaw:
    known, step_s = table[:, 3], table[:, 4]
    count = int(_model_numbers(table).max()) + 1
    fitted = []
    for form in _FORMS_OF_FEW.get(count, _FORMS):
        solution = fit_squares(_columns(form, table), step_s, known)
        fitted.append((form, tuple(float(x) for x in solution)))
    return FlopsLaw(coefficients=tuple(fitted), model_count=count, relative_sd=relative_sd)


def _left_out_logs(table: Floats, out: NDArray[np.bool_]) -> Floats:
    law = _law(table[~out], relative_sd=0.0)
    predicted = [law.step_s(_facts(row)) for row in table[out]]
    return np.asarray(np.log(predicted) - np.log(table[out][:, 4]))


def _columns(form: str, table: Floats) -> Floats:
    flops, batch, tensors = table[:, 0], table[:, 1], table[:, 2]
    columns = {
        "1": np.ones_like(flops),
        "N": tensors,
        "G": batch * flops,
        "A": batch * np.sqrt(flops * tensors),
    }
    return np.column_stack([columns[letter] for letter in form])


def _model_numbers(table: Floats) -> NDArray[np.intp]:
    return np.unique(table[:, [0, 2]], axis=0, return_inverse=True)[1].reshape(-1)


def _facts(row: Floats) -> ModelFacts:
    flops, batch, tensors, known_s = (float(x) for x in row[:4])
    return ModelFacts(flops_per_sample=flops, batch=batch, tensor_count=tensors, known_s=known_s)
