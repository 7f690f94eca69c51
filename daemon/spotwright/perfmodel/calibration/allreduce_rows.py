"""Fitting the all-reduce model: compute per device, links per instance type, overlap in common."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import NetworkRate
from spotwright.domain.workload import AllreduceTuning, ComputeProfile, Links, Workload
from spotwright.perfmodel.allreduce import AllreduceModel
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
from spotwright.perfmodel.ring_hardware import (
    FLOW_LIMIT_MBPS,
    USUAL_SHARING,
    RingHardware,
    ring_hardware,
    usual_hop_loss,
)
from spotwright.perfmodel.step_model import worker_class


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

    def fit(self) -> Fitted:
        """Fit the rows, under priors."""
        fitted = fit_map(
            self.parameters(),
            lambda values: np.log(self.steps(self.workload(values)).seconds),
            log_steps(self.runs),
            other_starts=[{f"intra:{name}": 0.25 for name in self._types}],  # two basins exist
        )
        return Fitted(self.workload(fitted.values), hardly_shown(fitted))

    def parameters(self) -> list[Parameter]:
        """Return priors: compute from the rows' scale, the rest where the model has it anyway."""
        found, usual = compute_parameters(self.runs), AllreduceTuning()
        if any(p.name.startswith("fixed:") for p in found):
            found.append(Parameter(name="knee", centre=1.5, log_sd=0.5, floor=1.0))
        for name in self._types:
            found += self._link_parameters(name)
        if self._identifiable.several_gpus:
            spread, head = usual.gpu_spread_fraction, usual.head_fraction
            power = usual.overlap_power
            found.append(Parameter(name="gpu_spread", centre=spread, log_sd=0.7))
            found.append(Parameter(name="head", centre=head, log_sd=1.0, share=True))
            found.append(Parameter(name="power", centre=power, log_sd=0.5, floor=1.0))
        return found + self._loss_parameters()

    def workload(self, values: Mapping[str, float]) -> Workload:
        """Return the workload with fitted values put in."""
        compute = {
            device: ComputeProfile(
                fixed_s=values.get(f"fixed:{device}", 0.0),
                per_sample_s=values[f"per_sample:{device}"],
                knee=values.get("knee", 1.0),
            )
            for device in devices(self.runs)
        }
        usual = self.base.allreduce or AllreduceTuning()
        links = {name: _links(name, usual, values) for name in self._types}
        tuning = replace(
            usual,
            head_fraction=values.get("head", usual.head_fraction),
            overlap_power=values.get("power", usual.overlap_power),
            gpu_spread_fraction=values.get("gpu_spread", usual.gpu_spread_fraction),
            hop_loss=values.get("hop_loss", usual.hop_loss),
            two_node_loss=values.get("two_node", usual.two_node_loss),
            links=dict(usual.links) | links,
        )
        return replace(self.base, compute=dict(self.base.compute) | compute, allreduce=tuning)

    def steps(self, workload: Workload) -> Steps:
        """Predict every row."""
        kinds, counts = self._kinds
        workers = [worker_class(workload, g, self._gpu_facts, self._network) for g, _ in kinds]
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
    def _kinds(self) -> tuple[list[tuple[NodeGroup, int]], Floats]:
        return worker_kinds(self.runs, by_batch=False)

    @cached_property
    def _rings(self) -> dict[str, RingHardware]:
        """What the model takes for granted of each type; the speed of its GPUs plays no part."""
        any_speed = {device: ComputeProfile(per_sample_s=1.0) for device in devices(self.runs)}
        workload = replace(self.base, compute=any_speed)
        return {
            name: ring_hardware(worker_class(workload, group, self._gpu_facts, self._network))
            for name, group in self._types.items()
        }

    def _link_parameters(self, name: str) -> list[Parameter]:
        ring, seen, found = self._rings[name], self._identifiable, []
        if name in seen.types_with_shared_nodes:
            found.append(Parameter(name=f"sharing:{name}", centre=USUAL_SHARING, log_sd=1.0))
            found.append(Parameter(name=f"intra:{name}", centre=ring.intra_mbps, log_sd=0.7))
        if name in seen.types_among_several or ring.network_mbps is None:
            centre = ring.network_mbps or FLOW_LIMIT_MBPS
            found.append(Parameter(name=f"net:{name}", centre=centre, log_sd=0.7))
        return found

    def _loss_parameters(self) -> list[Parameter]:
        """Leave out a loss that the model takes to be none: it has no logarithm to start from."""
        seen, found = self._identifiable, []
        if seen.types_among_several:
            hop_loss = usual_hop_loss(self.base.model.parameter_bytes)
            found.append(Parameter(name="hop_loss", centre=hop_loss, log_sd=0.7))
        losses = [self._rings[name].two_node_loss for name in seen.types_among_two]
        if max(losses, default=0.0) > 0:
            found.append(Parameter(name="two_node", centre=max(losses), log_sd=0.7))
        return found


def _links(name: str, usual: AllreduceTuning, values: Mapping[str, float]) -> Links:
    known = usual.links.get(name, Links())
    return Links(
        network_mbps=values.get(f"net:{name}", known.network_mbps),
        intra_mbps=values.get(f"intra:{name}", known.intra_mbps),
        sharing_fraction=values.get(f"sharing:{name}", known.sharing_fraction),
    )


def _types(runs: Iterable[Run]) -> set[str]:
    return {group.instance_type.name for run in runs for group in run.fleet.workers}


class _Identifiable:
    """What the rows vary, and so what they can tell."""

    def __init__(self, runs: Sequence[Run]) -> None:
        nodes = [sum(g.node_count for g in run.fleet.workers) for run in runs]
        self.types_among_several = _types(r for r, n in zip(runs, nodes, strict=True) if n > 1)
        self.types_among_two = _types(r for r, n in zip(runs, nodes, strict=True) if n == 2)
        self.types_with_shared_nodes = {
            g.instance_type.name for r in runs for g in r.fleet.workers if g.gpus_per_node > 1
        }
        self.shared_nodes = bool(self.types_with_shared_nodes)
        self.several_gpus = bool(self.types_among_several) or self.shared_nodes

    def notes(self) -> list[str]:
        notes = []
        if not self.types_among_several:
            notes.append("all rows have one node: network terms keep their catalog values")
        elif not self.types_among_two:
            notes.append("no row has two nodes: the loss of a two-node ring keeps its usual value")
        if not self.shared_nodes:
            notes.append("all nodes use one GPU: links inside a node keep their catalog values")
        return notes
