"""Asynchronous parameter servers: CM-DARE's clusters from their one-worker rows.

Facts used: the row with one worker and one server of each GPU and model, tensors and megabytes. For
two servers also the share of the bytes on the larger one, once as the product assumes it (all) and
once as dealing out the variables of the published graphs gives it.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.contention_rules import CHECKS, CONSIDERED, RIVALS, Case
from benchmarks.accuracy.product import Cells, Product
from benchmarks.accuracy.table import Row
from spotwright.domain.job import JobSpec

Floats = NDArray[np.float64]

ONE_SERVER_TARGETS, TWO_SERVER_TARGETS = (4.0, 15.0), (8.0, 20.0)  # mean, worst
SIZES = {"ResNet-15": (50, 2.8), "ShakeShakeSmall": (216, 11.7)}  # tensors, MB
DEALT_SHARES = {"ResNet-15": 0.54, "ShakeShakeSmall": 1.0}  # of the bytes, on one of two servers
ASSUMED_SHARES = dict.fromkeys(SIZES, 1.0)
BATCH = 128
_S_PER_TENSOR, _S_PER_MB = 0.108e-3, 1.26e-3  # of the 4-vCPU server, given
_LINK_MB_PER_S = 1250.0
_STEPS_PER_READING = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One measured cluster."""

    gpu: str
    model: str
    workers: int
    servers: int
    steps_per_s: float
    variation: float  # of one step, from the spread of speed readings

    @property
    def cells(self) -> Cells:
        """The cluster as a row of a measurements file."""
        tensors, megabytes = SIZES[self.model]
        return {
            "strategy": "asp-ps",
            "model": self.model,
            "fleet": f"{self.gpu}*{self.workers}",
            "batch_per_gpu": BATCH,
            "ps_count": self.servers,
            "parameter_bytes": megabytes * 1e6,
            "tensor_count": tensors,
            "cluster_steps_per_s": self.steps_per_s,
        }


@dataclass(frozen=True, slots=True)
class AsyncResult:
    """Predicted speeds of the clusters with one server, and of those with two."""

    clusters: Sequence[Cluster]
    speeds: Mapping[str, Floats]  # by rule, ours first
    inside: NDArray[np.bool_]  # of our 90 % interval

    def errors(self, rule: str) -> Floats:
        """Return signed errors in percent."""
        measured = np.array([c.steps_per_s for c in self.clusters])
        return 100 * (self.speeds[rule] / measured - 1)


def read_clusters(path: Path) -> list[Cluster]:
    """Read the published table; medians, as some runs contain transients."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_cluster(record) for record in csv.DictReader(file)]


def compare(
    product: Product, clusters: Sequence[Cluster], *, servers: int, shares: Mapping[str, float]
) -> AsyncResult:
    """Predict all clusters of two workers and more, with one or two servers."""
    known = [c for c in clusters if (c.workers, c.servers) == (1, 1)]
    tested = [c for c in clusters if c.workers > 1 and c.servers == servers]
    jobs = product.calibrate([c.cells for c in known])
    jobs = {name: _with_share(job, shares[name]) for name, job in jobs.items()}
    ours = product.predict([c.cells for c in tested], jobs)
    lone = {(c.gpu, c.model): c for c in known}
    cases = [_case(c, lone[c.gpu, c.model], shares[c.model]) for c in tested]
    speeds = {"ours": np.array([p.cluster_steps_per_s for p in ours])}
    rules = RIVALS | CONSIDERED | CHECKS
    speeds |= {name: np.array([rule(case) for case in cases]) for name, rule in rules.items()}
    steps = np.array([c.workers / c.steps_per_s for c in tested])
    low, high = (np.array([getattr(p.step_s, end) for p in ours]) for end in ("low", "high"))
    return AsyncResult(tested, speeds, (low <= steps) & (steps <= high))


def read_other_runs(path: Path) -> dict[tuple[str, str], Cluster]:
    """Read another published run of each one-worker set-up, by GPU and model."""
    with path.open(newline="", encoding="utf-8") as file:
        records = [record for record in csv.DictReader(file) if record["model"] in SIZES]
    return {
        (r["gpu"], r["model"]): Cluster(
            gpu=r["gpu"],
            model=r["model"],
            workers=1,
            servers=1,
            steps_per_s=1 / float(r["step_time_s"]),
            variation=_variation(r),
        )
        for r in records
    }


def with_other_variation(
    clusters: Sequence[Cluster], other: Mapping[tuple[str, str], Cluster]
) -> list[Cluster]:
    """Return the clusters with v of the other runs."""
    return [replace(c, variation=other[c.gpu, c.model].variation) for c in clusters]


def with_other_lone_speed(
    clusters: Sequence[Cluster], other: Mapping[tuple[str, str], Cluster]
) -> list[Cluster]:
    """Return the clusters with the other runs in place of the one-worker rows."""
    return [c for c in clusters if (c.workers, c.servers) != (1, 1)] + list(other.values())


def one_server_rows(result: AsyncResult) -> list[Row]:
    """Return mean and worst errors with one server, by GPU and together."""
    mean, worst = ONE_SERVER_TARGETS
    gpus = np.array([c.gpu for c in result.clusters])
    return [
        _row("1 PS, 2-8 workers, K80, mean", mean, result, gpus == "K80", np.mean),
        _row("1 PS, 2-8 workers, P100, mean", mean, result, gpus == "P100", np.mean),
        _row("1 PS, 2-8 workers, both GPUs, mean", mean, result, gpus != "", np.mean),
        _row("1 PS, 2-8 workers, both GPUs, worst", worst, result, gpus != "", np.max),
    ]


def two_server_rows(result: AsyncResult, facts: str) -> list[Row]:
    """Return mean and worst errors with two servers."""
    mean, worst = TWO_SERVER_TARGETS
    every = np.ones(len(result.clusters), dtype=np.bool_)
    return [
        _row(f"2 PS, P100, {facts}, mean", mean, result, every, np.mean),
        _row(f"2 PS, P100, {facts}, worst", worst, result, every, np.max),
    ]


def _row(
    what: str,
    target: float,
    result: AsyncResult,
    chosen: NDArray[np.bool_],
    figure: Callable[[Floats], np.floating],
) -> Row:
    found = {rule: float(figure(np.abs(result.errors(rule))[chosen])) for rule in ("ours", *RIVALS)}
    return Row(what=what, unit="%", ours=found.pop("ours"), target=target, rivals=found)


def _with_share(job: JobSpec, share: float) -> JobSpec:
    """Set what a user would write as workload.parameter_server.largest_shard."""
    serving = job.workload.parameter_serving
    assert serving is not None
    serving = replace(serving, largest_shard_fraction=share)
    return replace(job, workload=replace(job.workload, parameter_serving=serving))


def _case(cluster: Cluster, lone: Cluster, share: float) -> Case:
    tensors, megabytes = SIZES[cluster.model]
    shard_mb = megabytes if cluster.servers == 1 else max(share, 1 / cluster.servers) * megabytes
    return Case(
        workers=cluster.workers,
        lone_step_s=1 / lone.steps_per_s,
        one_server_demand_s=_S_PER_TENSOR * tensors + _S_PER_MB * megabytes,
        demand_s=_S_PER_TENSOR * tensors / cluster.servers + _S_PER_MB * shard_mb,
        link_s=shard_mb / _LINK_MB_PER_S,
        variation=lone.variation,
    )


def _cluster(record: Mapping[str, str]) -> Cluster:
    return Cluster(
        gpu=record["gpu"],
        model=record["model"],
        workers=int(record["workers"]),
        servers=int(record["ps"]),
        steps_per_s=float(record["speed_median"]),
        variation=_variation(record),
    )


def _variation(record: Mapping[str, str]) -> float:
    relative = float(record["speed_std"]) / float(record["speed_mean_steps_per_s"])
    return min(1.0, _STEPS_PER_READING * relative**2)
