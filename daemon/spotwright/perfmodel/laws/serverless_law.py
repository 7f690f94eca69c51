"""Step time of n functions of m MB behind one parameter server, fitted to measured steps.

    t = b (w0 + w1 / m) + n * 2 * parameter_bytes / S

w0 is the serial part of a sample's seconds, w1 the part that shrinks with memory, which buys CPU;
every push and pull passes the one server at S, one after another. w0, w1 and 1 / S are non-negative
and minimise the mean absolute relative error of the steps.

What the rows cannot tell apart is not fitted: the server keeps its given bandwidth where all rows
have one number of functions or where 1 / S comes out as nothing, and w0 is 0, speed proportional to
memory, where all have one memory size. `notes` says so.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.errors import CannotFitError
from spotwright.domain.workload import ServerlessLaw
from spotwright.perfmodel.laws.positive_figures import check_positive
from spotwright.perfmodel.laws.relative_fit import fit_deviations, separable
from spotwright.perfmodel.serverless import exchange_s

Floats = NDArray[np.float64]

_LAW = "serverless"
_NOTHING = 1e-3  # of the given server's time: a faster one does not show in the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerlessRow:
    """One measured configuration."""

    memory_mb: float
    function_count: float
    local_batch: float  # samples per function and step
    step_s: float


class Identified(NamedTuple):
    """Which coefficients the rows determined."""

    serial: bool  # w0
    server: bool  # S


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerlessFit:
    """A fitted law, for ServerlessLaw and ParameterServing."""

    s_per_sample: float
    mb_s_per_sample: float
    bandwidth_mbps: float  # of the server
    parameter_bytes: float
    identified: Identified
    relative_error: float  # mean absolute, of the rows fitted
    notes: tuple[str, ...]

    def step_s(self, *, memory_mb: float, function_count: float, local_batch: float) -> float:
        """Return the step time of a configuration."""
        sample_s = self.s_per_sample + self.mb_s_per_sample / memory_mb
        functions = np.array([function_count])
        exchange_s = _exchange_s(functions, self.parameter_bytes, self.bandwidth_mbps)
        return local_batch * sample_s + float(exchange_s[0])

    def applied_to(self, law: ServerlessLaw) -> ServerlessLaw:
        """Return a law with these speeds and no limit of the exchange but the server's."""
        return replace(
            law,
            samples_per_s_per_mb=None,
            samples_per_s_offset=0.0,
            s_per_sample=self.s_per_sample,
            mb_s_per_sample=self.mb_s_per_sample,
            function_max_mbps=None,
        )


def fit_serverless_law(
    rows: Sequence[ServerlessRow], *, parameter_bytes: float, bandwidth_mbps: float
) -> ServerlessFit:
    """Fit measured steps of one model.

    Args:
        rows: what was measured.
        parameter_bytes: of the model, pushed and pulled by each function in each step.
        bandwidth_mbps: of the server, used where the rows do not show it.

    Raises:
        CannotFitError: there are no rows, a figure is not positive, or the exchange at the given
            bandwidth leaves no time to compute.
    """
    table = _table(rows, parameter_bytes=parameter_bytes, bandwidth_mbps=bandwidth_mbps)
    exchange = _exchange_s(table[:, 1], parameter_bytes, 1.0)  # at 1 Mbit/s
    identified, (serial, per_memory, server) = _fitted(table, exchange, bandwidth_mbps)
    predicted = table[:, 2] * (serial + per_memory / table[:, 0]) + exchange * server
    return ServerlessFit(
        s_per_sample=serial,
        mb_s_per_sample=per_memory,
        bandwidth_mbps=1 / server,
        parameter_bytes=parameter_bytes,
        identified=identified,
        relative_error=float(np.mean(np.abs(predicted / table[:, 3] - 1))),
        notes=_notes(identified, bandwidth_mbps),
    )


def _exchange_s(functions: Floats, parameter_bytes: float, server_mbps: float) -> Floats:
    """Return the exchange through one server that holds all parameters."""
    return exchange_s(
        functions,
        shard_bytes=parameter_bytes,
        parameter_bytes=parameter_bytes,
        server_mbps=server_mbps,
        function_max_mbps=None,
    )


def _fitted(
    table: Floats, exchange: Floats, bandwidth_mbps: float
) -> tuple[Identified, tuple[float, float, float]]:
    """Return which coefficients the rows determined, and all three."""
    identified = _identified(table, exchange)
    found = _coefficients(table, exchange, identified, bandwidth_mbps)
    if identified.server and found[2] * bandwidth_mbps < _NOTHING:
        identified = identified._replace(server=False)
        found = _coefficients(table, exchange, identified, bandwidth_mbps)
    serial, per_memory, _ = found
    if serial + per_memory == 0:
        raise CannotFitError(
            _LAW,
            f"the exchange at {bandwidth_mbps:g} Mbit/s would take longer than the steps did",
            way_out="correct the bandwidth, or measure with several numbers of functions",
        )
    return identified, found


def _table(
    rows: Sequence[ServerlessRow], *, parameter_bytes: float, bandwidth_mbps: float
) -> Floats:
    """Return checked rows as columns memory, functions, batch, step; sorted, as optima may tie."""
    if not rows:
        raise CannotFitError(_LAW, "there are no rows", way_out="measure one configuration or more")
    check_positive(_LAW, parameter_bytes=parameter_bytes, bandwidth_mbps=bandwidth_mbps)
    for row in rows:
        check_positive(
            _LAW,
            memory_mb=row.memory_mb,
            function_count=row.function_count,
            local_batch=row.local_batch,
            step_s=row.step_s,
        )
    return np.array(sorted(astuple(row) for row in rows), dtype=np.float64)


def _identified(table: Floats, exchange: Floats) -> Identified:
    """Return the richest law that the rows determine, giving up the server first."""
    sizes, counts = (len(np.unique(table[:, i])) for i in (0, 1))
    for wish in (Identified(True, True), Identified(False, True), Identified(True, False)):
        possible = (sizes > 1 or not wish.serial) and (counts > 1 or not wish.server)
        needless = sizes > 1 and not wish.serial  # memory varies: speed before bandwidth
        design = _design(table, exchange, wish)
        if possible and not needless and separable(design, table[:, 3]):
            return wish
    return Identified(False, False)


def _coefficients(
    table: Floats, exchange: Floats, identified: Identified, bandwidth_mbps: float
) -> tuple[float, float, float]:
    """Return w0, w1 and 1 / S."""
    known = np.zeros_like(exchange) if identified.server else exchange / bandwidth_mbps
    found = iter(fit_deviations(_design(table, exchange, identified), table[:, 3], known))
    per_memory = float(next(found))
    serial = float(next(found)) if identified.serial else 0.0
    server = float(next(found)) if identified.server else 1 / bandwidth_mbps
    return serial, per_memory, server


def _design(table: Floats, exchange: Floats, identified: Identified) -> Floats:
    memory, _, batch, _ = table.T
    columns = [batch / memory]
    if identified.serial:
        columns.append(batch)
    if identified.server:
        columns.append(exchange)
    return np.column_stack(columns)


def _notes(identified: Identified, bandwidth_mbps: float) -> tuple[str, ...]:
    notes = []
    if not identified.serial:
        notes.append("the rows do not separate w0 from w1: speed is proportional to memory")
    if not identified.server:
        notes.append(f"the rows do not show the server: it keeps {bandwidth_mbps:g} Mbit/s")
    return tuple(notes)
