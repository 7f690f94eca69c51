"""Step time of a model never measured, from its operations: one GPU type, one worker, one server.

With g = flops_per_sample, b = batch and N = tensor_count: operations per layer grow as its width
squared and activations as its width, so a step computes G = b g and moves A = b sqrt(g N). Kernel
launches cost by the tensor. Four forms, each a limit of what a worker does:

    t = D + n N + k G             launches and arithmetic
    t = D + c + n N + k G         and a fixed cost
    t = D + m A                   memory traffic
    t = D + c + m A               and a fixed cost

D = s_per_tensor N + s_per_byte * parameter_bytes is the parameter server's known service time, zero
where none takes part. Coefficients are non-negative, fitted by least squared relative error.
The prediction is the geometric mean of the forms; no single form is best on both GPUs measured.

Few models bear fewer forms: two those of at most two coefficients, and one alone only t = D + k G,
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
from spotwright.domain.workload import ParameterServing
from spotwright.perfmodel.laws.positive_figures import check_positive
from spotwright.perfmodel.laws.relative_fit import fit_squares

Floats = NDArray[np.float64]

_LAW = "FLOPs"
_FORMS = ("NG", "1NG", "A", "1A")  # letters name the columns
_FORMS_OF_FEW = {1: ("G",), 2: ("NG", "A", "1A")}
_SD_OF_FEW = {1: 0.55, 2: 0.16, 3: 0.14}  # CM-DARE, every subset of 11 models, K80 and P100
_SERVER = ParameterServing()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of a model before it runs."""

    flops_per_sample: float
    batch: float
    tensor_count: float
    parameter_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsLaw:
    """Fitted forms of one GPU type."""

    coefficients: tuple[tuple[str, tuple[float, ...]], ...]  # by form
    server_s_per_tensor: float
    server_s_per_byte: float
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
        by_tensor = self.server_s_per_tensor * facts.tensor_count
        server_s = by_tensor + self.server_s_per_byte * facts.parameter_bytes
        table = np.array([astuple(facts)])
        return tuple(
            server_s + float((_columns(form, table) @ np.array(x))[0])
            for form, x in self.coefficients
        )


def fit_flops_law(
    points: Sequence[tuple[ModelFacts, float]],
    *,
    server_s_per_tensor: float = _SERVER.cpu_s_per_tensor,
    server_s_per_byte: float = _SERVER.cpu_s_per_byte,
) -> FlopsLaw:
    """Fit models and their measured step seconds, all on one GPU type.

    Rows of equal tensors, bytes and FLOPs are one model, whatever its batch.

    Raises:
        CannotFitError: there are no points, a figure is not positive, or a step is shorter than the
            server's service time.
    """
    if not points:
        raise CannotFitError(_LAW, "there are no rows", way_out="measure one model or more")
    for facts, step_s in points:
        check_positive(_LAW, step_s=step_s, **_named(facts))
    table = np.array(sorted((*astuple(facts), step_s) for facts, step_s in points))
    server = (server_s_per_tensor, server_s_per_byte)
    _check_server(table, server)
    models = _model_numbers(table)
    count = int(models.max()) + 1
    left_out = [
        _left_out_logs(table, models == m, server) for m in range(count if count > 1 else 0)
    ]
    measured_sd = math.sqrt(float(np.mean(np.concatenate(left_out) ** 2))) if left_out else 0.0
    return _law(table, server, relative_sd=max(measured_sd, _SD_OF_FEW.get(count, 0.0)))


def _law(table: Floats, server: tuple[float, float], *, relative_sd: float) -> FlopsLaw:
    known, step_s = _server_s(table, server), table[:, 4]
    count = int(_model_numbers(table).max()) + 1
    fitted = []
    for form in _FORMS_OF_FEW.get(count, _FORMS):
        solution = fit_squares(_columns(form, table), step_s, known)
        fitted.append((form, tuple(float(x) for x in solution)))
    return FlopsLaw(
        coefficients=tuple(fitted),
        server_s_per_tensor=server[0],
        server_s_per_byte=server[1],
        model_count=count,
        relative_sd=relative_sd,
    )


def _left_out_logs(table: Floats, out: NDArray[np.bool_], server: tuple[float, float]) -> Floats:
    law = _law(table[~out], server, relative_sd=0.0)
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
    return np.unique(table[:, [0, 2, 3]], axis=0, return_inverse=True)[1].reshape(-1)


def _server_s(table: Floats, server: tuple[float, float]) -> Floats:
    return np.asarray(table[:, 2:4] @ np.array(server))


def _check_server(table: Floats, server: tuple[float, float]) -> None:
    for known_s, step_s in zip(_server_s(table, server), table[:, 4], strict=True):
        if known_s >= step_s:
            raise CannotFitError(
                _LAW,
                f"a step took {step_s:.4g} s, less than the {known_s:.4g} s of its server",
                way_out="give the server's own time per tensor and byte, or 0 where none took part",
            )


def _facts(row: Floats) -> ModelFacts:
    flops, batch, tensors, size = (float(x) for x in row[:4])
    return ModelFacts(
        flops_per_sample=flops, batch=batch, tensor_count=tensors, parameter_bytes=size
    )


def _named(facts: ModelFacts) -> dict[str, float]:
    return {
        "flops_per_sample": facts.flops_per_sample,
        "batch": facts.batch,
        "tensor_count": facts.tensor_count,
        "parameter_bytes": facts.parameter_bytes,
    }
