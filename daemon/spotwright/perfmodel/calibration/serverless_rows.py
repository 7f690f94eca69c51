"""Rows of serverless runs: laws/serverless_law.py fitted to measured steps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import FunctionGroup
from spotwright.domain.workload import ParameterServing, ServerlessLaw, Workload
from spotwright.perfmodel.calibration.runs import Fitted, Indices, Run, Steps
from spotwright.perfmodel.laws.serverless_law import (
    ServerlessFit,
    ServerlessRow,
    fit_serverless_law,
)
from spotwright.perfmodel.serverless import exchange_s, seconds_per_sample

_USUAL_SERVER_MBPS = 9_600.0  # 1.2 GB/s, the papers' server


class ServerlessRows:
    """Rows of one model trained on functions."""

    def __init__(self, base: Workload, runs: Sequence[Run]) -> None:
        """Keep the rows; `base` gives the model's size."""
        self.base = base
        self.runs: Sequence[Run] = runs
        self.notes: Sequence[str] = self._law().notes

    def fit(self) -> Fitted:
        """Fit the rows; what they do not show is in the notes already."""
        fitted = self._law()
        largest = max(run.batch_per_gpu * _functions(run).function_count for run in self.runs)
        usual = self.base.serverless or ServerlessLaw(
            mb_s_per_sample=fitted.mb_s_per_sample,
            batch_per_function_count=self.runs[0].batch_per_gpu,
            max_global_batch_count=largest,
        )
        serving = replace(self._serving, bandwidth_mbps=fitted.bandwidth_mbps)
        law = fitted.applied_to(usual)
        return Fitted(replace(self.base, batch=None, serverless=law, parameter_serving=serving))

    def steps(self, workload: Workload) -> Steps:
        """Predict every row."""
        law, serving = workload.serverless, workload.parameter_serving
        assert law is not None
        assert serving is not None
        assert serving.bandwidth_mbps is not None
        batch = np.array([float(run.batch_per_gpu) for run in self.runs])
        functions = np.array([float(_functions(run).function_count) for run in self.runs])
        sample_s = np.array(
            [seconds_per_sample(law, _functions(run).memory_mb) for run in self.runs]
        )
        exchanging_s = exchange_s(
            functions,
            shard_bytes=workload.model.parameter_bytes,
            parameter_bytes=workload.model.parameter_bytes,
            server_mbps=serving.bandwidth_mbps,
            function_max_mbps=law.function_max_mbps,
        )
        seconds = batch * sample_s + exchanging_s
        return Steps(seconds, exchanging_s / seconds)

    def take(self, index: Indices) -> Self:
        """Return some of the rows."""
        return type(self)(self.base, [self.runs[i] for i in index])

    @property
    def _serving(self) -> ParameterServing:
        return self.base.parameter_serving or ParameterServing()

    def _law(self) -> ServerlessFit:
        rows = [
            ServerlessRow(
                memory_mb=_functions(run).memory_mb,
                function_count=_functions(run).function_count,
                local_batch=run.batch_per_gpu,
                step_s=run.step_s,
            )
            for run in self.runs
        ]
        return fit_serverless_law(
            rows,
            parameter_bytes=self.base.model.parameter_bytes,
            bandwidth_mbps=self._serving.bandwidth_mbps or _USUAL_SERVER_MBPS,
        )


def _functions(run: Run) -> FunctionGroup:
    if run.fleet.functions is None:
        raise BadInputError(f"line {run.line}: a serverless fleet is written as lambda:MB*COUNT")
    return run.fleet.functions
