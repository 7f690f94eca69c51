"""Fitting the serverless model: seconds per sample by memory, and what the server sustains.

step = b (w0 + w1 / m) + 2 n d_m / S
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from spotwright.domain.errors import BadInputError
from spotwright.domain.workload import ParameterServing, ServerlessLaw, Workload
from spotwright.perfmodel.calibration.map_fit import Parameter
from spotwright.perfmodel.calibration.runs import Floats, Indices, Run, Steps

_USUAL_SERVER_MBPS = 9_600.0  # 1.2 GB/s, the papers' server


class ServerlessRows:
    """Rows of one model trained on functions."""

    def __init__(self, base: Workload, runs: Sequence[Run]) -> None:
        """Keep the rows; `base` gives the model's size."""
        self.base = base
        self.runs: Sequence[Run] = runs
        self.notes: Sequence[str] = self._notes()

    def parameters(self) -> list[Parameter]:
        """Return priors from the rows' scale; what they do not vary is left out."""
        per_sample = float((0.7 * self._target_s / self._batch).min())
        found = [
            Parameter(
                name="per_memory", centre=per_sample * float(self._memory_mb.mean()), log_sd=2.0
            )
        ]
        if len(set(self._memory_mb)) > 1:
            found.append(Parameter(name="base", centre=0.1 * per_sample, log_sd=2.0))
        if len(set(self._functions / self._batch)) > 1:
            server = (self.base.parameter_serving or ParameterServing()).bandwidth_mbps
            found.append(
                Parameter(name="server_mbps", centre=server or _USUAL_SERVER_MBPS, log_sd=0.5)
            )
        return found

    def other_starts(self) -> list[dict[str, float]]:
        """Return no further starts."""
        return []

    def workload(self, values: Mapping[str, float]) -> Workload:
        """Return the workload with fitted values put in."""
        usual = self.base.serverless or ServerlessLaw(
            batch_per_function_count=int(self._batch[0]),
            max_global_batch_count=int((self._batch * self._functions).max()),
        )
        law = replace(
            usual,
            samples_per_s_per_mb=None,
            s_per_sample=values.get("base", 0.0),
            mb_s_per_sample=values["per_memory"],
            function_max_mbps=None,
        )
        serving = self.base.parameter_serving or ParameterServing()
        server = values.get("server_mbps") or serving.bandwidth_mbps or _USUAL_SERVER_MBPS
        serving = replace(serving, bandwidth_mbps=server)
        return replace(self.base, serverless=law, parameter_serving=serving)

    def steps(self, workload: Workload) -> Steps:
        """Predict every row."""
        law, serving = workload.serverless, workload.parameter_serving
        assert law is not None
        assert law.mb_s_per_sample is not None
        assert serving is not None
        assert serving.bandwidth_mbps is not None
        compute_s = self._batch * (law.s_per_sample + law.mb_s_per_sample / self._memory_mb)
        megabits = workload.model.parameter_bytes * 8e-6
        exchange_s = 2 * self._functions * megabits / serving.bandwidth_mbps
        seconds = compute_s + exchange_s
        return Steps(seconds, exchange_s / seconds)

    def take(self, index: Indices) -> Self:
        """Return some of the rows."""
        return type(self)(self.base, [self.runs[i] for i in index])

    @cached_property
    def _target_s(self) -> Floats:
        return np.array([run.step_s for run in self.runs])

    @cached_property
    def _batch(self) -> Floats:
        return np.array([float(run.batch_per_gpu) for run in self.runs])

    @cached_property
    def _memory_mb(self) -> Floats:
        return np.array([float(_functions(run)[0]) for run in self.runs])

    @cached_property
    def _functions(self) -> Floats:
        return np.array([float(_functions(run)[1]) for run in self.runs])

    def _notes(self) -> list[str]:
        notes = []
        if len(set(self._memory_mb)) == 1:
            notes.append("all rows have one memory size: speed is taken as proportional to it")
        if len(set(self._functions / self._batch)) == 1:
            notes.append("functions and batch never vary apart: the server keeps its usual rate")
        return notes


def _functions(run: Run) -> tuple[int, int]:
    functions = run.fleet.functions
    if functions is None:
        raise BadInputError(f"line {run.line}: a serverless fleet is written as lambda:MB*COUNT")
    return functions.memory_mb, functions.function_count
