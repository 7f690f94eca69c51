"""Fitting parameter-server models: compute per device, servers only where rows show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import ComputeProfile, ParameterServing, Strategy, Workload
from spotwright.perfmodel.asp_ps import AspPsModel
from spotwright.perfmodel.bsp_ps import BspPsModel
from spotwright.perfmodel.calibration.map_fit import Parameter, fit_map, hardly_shown
from spotwright.perfmodel.calibration.runs import (
    Fitted,
    Floats,
    Indices,
    Run,
    Steps,
    compute_notes,
    compute_parameters,
    devices,
    log_steps,
    worker_kinds,
)
from spotwright.perfmodel.compute import GpuFacts
from spotwright.perfmodel.parameter_server import server_demand
from spotwright.perfmodel.step_model import StepModel, WorkerClass, worker_class

_FEW_WORKERS = 2  # rows with more show how the servers share


@dataclass(frozen=True, slots=True)
class _ServerSet:
    """Rows that ran against the same servers."""

    servers: tuple[NodeGroup, ...]
    columns: Indices


class ParameterServerRows:
    """Rows of one model trained on parameter servers."""

    def __init__(
        self, base: Workload, runs: Sequence[Run], gpu_facts: GpuFacts, network: NetworkRate
    ) -> None:
        """Keep the rows; `base` gives sizes and whatever is not fitted."""
        self.base = base
        self.runs: Sequence[Run] = runs
        self._gpu_facts, self._network = gpu_facts, network
        self.notes: Sequence[str] = [*compute_notes(runs), *self._server_notes()]

    def fit(self) -> Fitted:
        """Fit the rows, under priors."""
        fitted = fit_map(
            self.parameters(),
            lambda values: np.log(self.steps(self.workload(values)).seconds),
            log_steps(self.runs),
        )
        return Fitted(self.workload(fitted.values), hardly_shown(fitted))

    def parameters(self) -> list[Parameter]:
        """Return priors: compute from the rows' scale, servers around their known constants."""
        found = compute_parameters(self.runs)
        if self._shows_sharing:
            found.append(Parameter(name="cpu_scale", centre=1.0, log_sd=0.25))
        if self._shows_sharding:
            found.append(Parameter(name="largest_shard", centre=0.7, log_sd=1.0, share=True))
        if self.base.strategy is Strategy.BSP_PS and self._shows_sharing:
            found.append(Parameter(name="overlap", centre=0.1, log_sd=1.5, share=True))
        return found

    def workload(self, values: Mapping[str, float]) -> Workload:
        """Return the workload with fitted values put in."""
        compute = {
            device: ComputeProfile(
                fixed_s=values.get(f"fixed:{device}", 0.0),
                per_sample_s=values[f"per_sample:{device}"],
            )
            for device in devices(self.runs)
        }
        usual = self.base.parameter_serving or ParameterServing()
        scale = values.get("cpu_scale", 1.0)
        serving = replace(
            usual,
            cpu_s_per_tensor=usual.cpu_s_per_tensor * scale,
            cpu_s_per_byte=usual.cpu_s_per_byte * scale,
            largest_shard_fraction=values.get("largest_shard", usual.largest_shard_fraction),
            overlap_fraction=values.get("overlap", usual.overlap_fraction),
        )
        compute = dict(self.base.compute) | compute
        return replace(self.base, compute=compute, parameter_serving=serving)

    def steps(self, workload: Workload) -> Steps:
        """Predict every row: the mean step of its workers."""
        kinds, counts = self._kinds
        workers = [
            replace(worker_class(workload, g, self._gpu_facts, self._network), batch_per_gpu=batch)
            for g, batch in kinds
        ]
        seconds, shares = np.empty(len(self.runs)), np.empty(len(self.runs))
        for server_set in self._server_sets:
            model = self._model(workload, workers, server_set.servers)
            mine = counts[:, server_set.columns]
            speed = model.speed(mine)
            mean = mine.sum(axis=0) if workload.strategy is Strategy.ASP_PS else 1.0
            seconds[server_set.columns] = speed.iteration_s * mean
            shares[server_set.columns] = speed.communication_fraction
        return Steps(seconds, shares)

    def take(self, index: Indices) -> Self:
        """Return some of the rows."""
        runs = [self.runs[i] for i in index]
        return type(self)(self.base, runs, self._gpu_facts, self._network)

    @cached_property
    def _shows_sharing(self) -> bool:
        counts = (sum(g.node_count for g in run.fleet.workers) for run in self.runs)
        return any(count > _FEW_WORKERS for count in counts)

    @cached_property
    def _shows_sharding(self) -> bool:
        return any(sum(g.node_count for g in run.fleet.servers) > 1 for run in self.runs)

    def _server_notes(self) -> list[str]:
        notes = []
        if not self._shows_sharing:
            notes.append(
                "no row has more than two workers: the servers' CPU constants keep their values"
            )
        if not self._shows_sharding:
            notes.append("all rows have one server: the largest shard keeps its usual share")
        return notes

    def _model(
        self, workload: Workload, workers: Sequence[WorkerClass], servers: Sequence[NodeGroup]
    ) -> StepModel:
        demand = server_demand(workload, servers, self._network)
        latency_s = [0.0] * len(workers)
        if workload.strategy is Strategy.BSP_PS:
            return BspPsModel(workload, workers, demand, latency_s=latency_s)
        return AspPsModel(
            workload, workers, demand, latency_s=latency_s, most_workers=self._most_workers
        )

    @cached_property
    def _most_workers(self) -> int:
        return max(sum(g.node_count for g in run.fleet.workers) for run in self.runs)

    @cached_property
    def _server_sets(self) -> list[_ServerSet]:
        columns: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for place, run in enumerate(self.runs):
            key = tuple((g.instance_type.name, g.node_count) for g in run.fleet.servers)
            columns.setdefault(key, []).append(place)
        return [
            _ServerSet(self.runs[places[0]].fleet.servers, np.array(places))
            for places in columns.values()
        ]

    @cached_property
    def _kinds(self) -> tuple[list[tuple[NodeGroup, int]], Floats]:
        return worker_kinds(self.runs, by_batch=True)
