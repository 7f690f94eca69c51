"""Fitting the all-reduce model: compute per device, links per instance type, overlap in common."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import AllreduceTuning, ComputeProfile, Links, Workload
from spotwright.perfmodel.allreduce import AllreduceModel
from spotwright.perfmodel.calibration.map_fit import Parameter, fit_map
from spotwright.perfmodel.calibration.runs import (
    Floats,
    Indices,
    Run,
    Steps,
    compute_notes,
    compute_parameters,
    devices,
    log_steps,
)
from spotwright.perfmodel.compute import GpuFacts
from spotwright.perfmodel.step_model import network_rate, worker_class

_USUAL_NET_MBPS, _USUAL_INTRA_MBPS = 10_000.0, 63_000.0
_FLOW_LIMIT_MBPS = 10_000.0


class AllreduceRows:
    """Rows of one model trained with all-reduce."""

    def __init__(
        self, base: Workload, runs: Sequence[Run], gpu_facts: GpuFacts, network: NetworkRate
    ) -> None:
        """Keep the rows; `base` gives sizes and whatever is not fitted."""
        self.base = base
        self.runs: Sequence[Run] = runs
        self._gpu_facts, self._network = gpu_facts, network
        self._identifiable = _Identifiable(runs)
        self.notes: Sequence[str] = [*self._identifiable.notes(), *compute_notes(runs)]

    def fit(self) -> Workload:
        """Return the workload that fits the rows best."""
        fitted = fit_map(
            self.parameters(),
            lambda values: np.log(self.steps(self.workload(values)).seconds),
            log_steps(self.runs),
            other_starts=[{f"intra:{name}": 0.25 for name in self._types}],  # two basins exist
        )
        return self.workload(fitted.values)

    def parameters(self) -> list[Parameter]:
        """Return priors: compute from the rows' scale, links from hardware, the rest from DDP."""
        found = compute_parameters(self.runs)
        seen = self._identifiable
        if any(p.name.startswith("fixed:") for p in found):
            found.append(Parameter(name="knee", centre=1.5, log_sd=0.5))
        for group in self._types.values():
            found += self._link_parameters(group)
        if seen.several_gpus:
            found.append(Parameter(name="gpu_spread", centre=0.04, log_sd=0.7))
            found.append(Parameter(name="head", centre=0.45, log_sd=1.0, share=True))
            found.append(Parameter(name="power", centre=8.0, log_sd=0.5))
        if seen.several_nodes:
            found.append(Parameter(name="hop_loss", centre=0.015, log_sd=0.7))
        if seen.two_nodes:
            found.append(Parameter(name="two_node", centre=0.4, log_sd=0.7))
        return found

    def workload(self, values: Mapping[str, float]) -> Workload:
        """Return the workload with fitted values put in."""
        knee = max(values.get("knee", 1.0), 1.0)
        compute = {
            device: ComputeProfile(
                fixed_s=values.get(f"fixed:{device}", 0.0),
                per_sample_s=values[f"per_sample:{device}"],
                knee=knee,
            )
            for device in devices(self.runs)
        }
        usual = self.base.allreduce or AllreduceTuning()
        links = {name: _links(name, usual, values) for name in self._types}
        tuning = replace(
            usual,
            head_fraction=values.get("head", usual.head_fraction),
            overlap_power=max(values.get("power", usual.overlap_power), 1.0),
            gpu_spread_fraction=values.get("gpu_spread", usual.gpu_spread_fraction),
            hop_loss=values.get("hop_loss", usual.hop_loss),
            two_node_loss=values.get("two_node", usual.two_node_loss),
            links=dict(usual.links) | links,
        )
        return replace(self.base, compute=dict(self.base.compute) | compute, allreduce=tuning)

    def steps(self, workload: Workload) -> Steps:
        """Predict every row."""
        groups, counts = self._classes
        workers = [worker_class(workload, g, self._gpu_facts, self._network) for g in groups]
        model = AllreduceModel(workload, workers)
        batch = np.broadcast_to(self._batch, counts.shape)
        compute_s = model.compute_s(counts, batch)
        seconds = model.overlapped_s(counts, compute_s)
        return Steps(seconds, np.clip(1 - compute_s / seconds, 0.0, 1.0))

    def take(self, index: Indices) -> Self:
        """Return some of the rows."""
        runs = [self.runs[i] for i in index]
        return type(self)(self.base, runs, self._gpu_facts, self._network)

    @cached_property
    def _types(self) -> dict[str, NodeGroup]:
        groups = (g for run in self.runs for g in run.fleet.workers)
        return dict(sorted({g.instance_type.name: g for g in groups}.items()))

    @cached_property
    def _batch(self) -> Floats:
        return np.array([float(run.batch_per_gpu) for run in self.runs])

    @cached_property
    def _classes(self) -> tuple[list[NodeGroup], Floats]:
        """Return the kinds of node that occur, and how many of each every row has."""
        kinds: dict[tuple[str, float], NodeGroup] = {}
        for run in self.runs:
            for group in run.fleet.workers:
                kinds.setdefault((group.instance_type.name, group.gpus_per_node), group)
        places = {kind: place for place, kind in enumerate(kinds)}
        counts = np.zeros((len(kinds), len(self.runs)))
        for column, run in enumerate(self.runs):
            for group in run.fleet.workers:
                kind = (group.instance_type.name, group.gpus_per_node)
                counts[places[kind], column] += group.node_count
        return list(kinds.values()), counts

    def _link_parameters(self, group: NodeGroup) -> list[Parameter]:
        """Centre the priors on hardware: one TCP flow between nodes, PCIe or NVLink inside."""
        name, seen = group.instance_type.name, self._identifiable
        intra = group.instance_type.nvlink_mbps or group.instance_type.pcie_mbps
        net = network_rate(group, self._network)
        found = []
        if name in seen.types_with_shared_nodes:
            found.append(Parameter(name=f"sharing:{name}", centre=0.05, log_sd=1.0))
            centre = intra or _USUAL_INTRA_MBPS
            found.append(Parameter(name=f"intra:{name}", centre=centre, log_sd=0.7))
        if name in seen.types_among_several or net is None:
            centre = min(net, _FLOW_LIMIT_MBPS) if net else _USUAL_NET_MBPS
            found.append(Parameter(name=f"net:{name}", centre=centre, log_sd=0.7))
        return found


def _links(name: str, usual: AllreduceTuning, values: Mapping[str, float]) -> Links:
    known = usual.links.get(name, Links())
    return Links(
        network_mbps=values.get(f"net:{name}", known.network_mbps),
        intra_mbps=values.get(f"intra:{name}", known.intra_mbps),
        sharing_fraction=values.get(f"sharing:{name}", known.sharing_fraction),
    )


class _Identifiable:
    """What the rows vary, and so what they can tell."""

    def __init__(self, runs: Sequence[Run]) -> None:
        nodes = [sum(g.node_count for g in run.fleet.workers) for run in runs]
        self.several_nodes = any(count > 1 for count in nodes)
        self.two_nodes = any(count == 2 for count in nodes)
        self.types_among_several = {
            g.instance_type.name
            for run, count in zip(runs, nodes, strict=True)
            for g in run.fleet.workers
            if count > 1
        }
        self.types_with_shared_nodes = {
            g.instance_type.name for r in runs for g in r.fleet.workers if g.gpus_per_node > 1
        }
        self.shared_nodes = bool(self.types_with_shared_nodes)
        self.several_gpus = self.several_nodes or self.shared_nodes

    def notes(self) -> list[str]:
        notes = []
        if not self.several_nodes:
            notes.append("all rows have one node: network terms keep their catalog values")
        elif not self.two_nodes:
            notes.append("no row has two nodes: the loss of a two-node ring keeps its usual value")
        if not self.shared_nodes:
            notes.append("all nodes use one GPU: links inside a node keep their catalog values")
        return notes
