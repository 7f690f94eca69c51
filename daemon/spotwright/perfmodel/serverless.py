"""Serverless workers (lambdaDNN): equal functions of m MB, a parameter server on an instance.

    iteration   t = b / R(m) + exchange: twice the slower of n shards at B_ps, a model at B_function
    speed       R(m) = a m + c as published, or 1 / (w0 + w1 / m) as fitted
    batch       b = b_f while b_f n <= b_gmax, else b_gmax / n
    start       t_load = dataset / (n B_s(m)),  B_s = min(line in m, storage limit)

A function that would run into its timeout saves its state before and is started again; each
restart loads the data and the model anew. All functions of a fleet have one size; what is said of
one fleet is worked out for any number of them at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from spotwright.domain.errors import BadInputError, MissingFactError
from spotwright.domain.prediction import StepTerms
from spotwright.domain.workload import ServerlessLaw, Workload
from spotwright.perfmodel.parameter_server import ServerDemand
from spotwright.perfmodel.step_model import ClusterSpeed, Floats

Numbers = TypeVar("Numbers", float, Floats)


class ServerlessModel:
    """Synchronous training on functions."""

    def __init__(
        self, workload: Workload, memory_mb: Sequence[float] | Floats, demand: ServerDemand
    ) -> None:
        """Prepare for functions of these sizes, one for each fleet or one for all."""
        self._law = serverless_law(workload)
        self._demand = demand
        self._s_per_sample = _known_s_per_sample(self._law, np.asarray(memory_mb, np.float64))

    def speed(self, counts: Floats) -> ClusterSpeed:
        """Evaluate clusters of n functions; `counts` has one row."""
        functions = counts.sum(axis=0)
        batch = local_batch(self._law, functions)
        compute_s = self._s_per_sample * batch
        step_s = compute_s + self._exchange_s(functions)
        return ClusterSpeed(
            iteration_s=step_s,
            step_s=np.broadcast_to(step_s, counts.shape),
            group_samples_per_s=counts * batch / step_s,
            communication_fraction=1 - compute_s / step_s,
        )

    def terms(self, counts: Floats) -> tuple[StepTerms, ...]:
        """Explain one cluster."""
        fleet = counts[:, None]
        network_s = float(self._exchange_s(fleet.sum(axis=0))[0])
        step_s = float(self.speed(fleet).iteration_s[0])
        terms = StepTerms(compute_s=step_s - network_s, network_s=network_s)
        return tuple(terms for _ in counts)

    def _exchange_s(self, functions: Floats) -> Floats:
        return exchange_s(
            functions,
            shard_bytes=self._demand.shard_bytes,
            parameter_bytes=self._demand.parameter_bytes,
            server_mbps=self._demand.bandwidth_mbps,
            function_max_mbps=self._law.function_max_mbps,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """What a run of functions adds to the time it trains."""

    load_s: float
    restart_count: int
    restart_s: float

    @property
    def total_s(self) -> float:
        """Seconds beside training."""
        return self.load_s + self.restart_count * self.restart_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycles:
    """What runs of functions add to the time they train; one entry per fleet."""

    load_s: Floats
    restart_count: Floats  # infinite: a function spends its whole life loading
    restart_s: Floats

    @property
    def total_s(self) -> Floats:
        """Seconds beside training; infinite for runs that never end."""
        return self.load_s + self.restart_count * self.restart_s


def lifecycle(
    workload: Workload, *, memory_mb: float, functions: int, training_s: float
) -> Lifecycle:
    """Return loading and the restarts that the timeout forces.

    Raises:
        BadInputError: the functions never come to train.
    """
    found = lifecycles(
        workload,
        memory_mb=np.array([float(memory_mb)]),
        functions=np.array([float(functions)]),
        training_s=np.array([training_s]),
    )
    if not np.isfinite(found.restart_count[0]):
        timeout_s = serverless_law(workload).timeout_s
        raise BadInputError(
            f"a function of {memory_mb:g} MB spends its whole {timeout_s:g} s loading; "
            "use more functions or more memory"
        )
    return Lifecycle(
        load_s=float(found.load_s[0]),
        restart_count=int(found.restart_count[0]),
        restart_s=float(found.restart_s[0]),
    )


def lifecycles(
    workload: Workload, *, memory_mb: Floats, functions: Floats, training_s: Floats
) -> Lifecycles:
    """Return loading and the restarts that the timeout forces, by fleet."""
    law, dataset = serverless_law(workload), workload.dataset
    if dataset is None or dataset.size_bytes is None:
        raise MissingFactError("the size of the data set", way_out="add workload.dataset.size")
    line = law.storage_mbps_per_mb * memory_mb + law.storage_mbps_offset
    rate = np.minimum(line, law.storage_max_mbps)
    load_s = _quotient(dataset.size_bytes * 8e-6, functions * rate)
    model_s = _quotient(workload.model.parameter_bytes * 8e-6, rate)
    restart_s = load_s + model_s + law.resume_s
    life_s = law.timeout_s - law.checkpoint_margin_s
    left_s = np.maximum(training_s - (life_s - load_s), 0.0)
    restarts = np.ceil(_quotient(left_s, life_s - restart_s))
    return Lifecycles(load_s=load_s, restart_count=restarts, restart_s=restart_s)


def serverless_law(workload: Workload) -> ServerlessLaw:
    """Return the law of a workload's functions."""
    if workload.serverless is None:
        raise MissingFactError("how fast functions are", way_out="add workload.serverless")
    return workload.serverless


def exchange_s(
    functions: Floats,
    *,
    shard_bytes: float,
    parameter_bytes: float,
    server_mbps: float,
    function_max_mbps: float | None,
) -> Floats:
    """Return the push and pull of one step: all functions share the busiest server's link."""
    server_s = functions * (shard_bytes * 8e-6 / server_mbps)
    own_s = parameter_bytes * 8e-6 / function_max_mbps if function_max_mbps else 0.0
    return 2 * np.maximum(server_s, own_s)


def seconds_per_sample(law: ServerlessLaw, memory_mb: float) -> float:
    """Return the compute time of one sample on one function.

    Raises:
        BadInputError: the law gives a function of this size no speed.
    """
    return float(_known_s_per_sample(law, np.array([float(memory_mb)]))[0])


def s_per_sample_by_memory(law: ServerlessLaw, memory_mb: Floats) -> Floats:
    """Return the compute time of one sample by size; infinite where the law gives no speed."""
    if law.mb_s_per_sample is not None:
        return law.s_per_sample + law.mb_s_per_sample / memory_mb
    if law.samples_per_s_per_mb is None:
        raise MissingFactError("the speed of a function", way_out="add samples_per_s to its law")
    return _quotient(1.0, law.samples_per_s_per_mb * memory_mb + law.samples_per_s_offset)


def _known_s_per_sample(law: ServerlessLaw, memory_mb: Floats) -> Floats:
    found = s_per_sample_by_memory(law, memory_mb)
    if not np.isfinite(found).all():
        size_mb = float(memory_mb[~np.isfinite(found)][0])
        raise BadInputError(f"the speed law gives no speed at {size_mb:g} MB; use more memory")
    return found


def _quotient(amount: Floats | float, rate: Floats) -> Floats:
    """Return amount / rate, infinite where there is no rate."""
    endless = np.full(np.shape(rate), np.inf)
    return np.asarray(np.divide(amount, rate, out=endless, where=rate > 0))


def local_batch(law: ServerlessLaw, functions: Floats) -> Floats:
    """Return the batch of one function."""
    return np.minimum(law.batch_per_function_count, law.max_global_batch_count / functions)


def functions_usd_per_s(law: ServerlessLaw, *, memory_mb: Numbers, functions: Numbers) -> Numbers:
    """Return the price of all functions of a fleet while they run."""
    return memory_mb / 1024 * functions * law.usd_per_gib_s
