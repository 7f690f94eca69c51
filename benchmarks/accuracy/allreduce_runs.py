"""The published all-reduce runs on g4dn.12xlarge, and which of them leave together."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.product import Cells

TYPE = "g4dn.12xlarge"
GRADIENT_BYTES = {"imagenet": 102.2e6, "cifar10": 44.7e6, "ncf": 6.4e6}  # the last one estimated
_SPLITS = Path(__file__).with_name("splits.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllreduceRun:
    """One measured step."""

    model: str
    table: str
    gpus_by_node: tuple[int, ...]  # sorted
    batch_per_gpu: int
    step_s: float

    @property
    def nodes(self) -> int:
        """Nodes in the ring."""
        return len(self.gpus_by_node)

    @property
    def gpus(self) -> int:
        """GPUs in the ring."""
        return sum(self.gpus_by_node)

    @property
    def placement(self) -> str:
        """GPUs per node as digits, the name the splits use."""
        return "".join(map(str, self.gpus_by_node))

    @property
    def cells(self) -> Cells:
        """The run as a row of a measurements file."""
        counts = {gpus: self.gpus_by_node.count(gpus) for gpus in self.gpus_by_node}
        return {
            "strategy": "allreduce",
            "model": self.model,
            "fleet": " + ".join(f"{TYPE}:{gpus}*{count}" for gpus, count in counts.items()),
            "batch_per_gpu": self.batch_per_gpu,
            "parameter_bytes": GRADIENT_BYTES[self.model],
            "step_s": self.step_s,
        }


def read_runs(path: Path) -> list[AllreduceRun]:
    """Read the published table."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_run(record) for record in csv.DictReader(file)]


def chosen(runs: Iterable[AllreduceRun], *, model: str, table: str) -> list[AllreduceRun]:
    """Return the runs of one model in one table."""
    return [run for run in runs if run.model == model and run.table == table]


def folds(runs: Sequence[AllreduceRun]) -> list[int]:
    """Return the fold of each run of one model; whole placements share one."""
    splits = json.loads(_SPLITS.read_text(encoding="utf-8"))
    parts: Mapping[str, Sequence[str]] = splits["allreduce_left_out_placements"][runs[0].model]
    fold_of = {placement: int(fold) for fold, names in parts.items() for placement in names}
    return [fold_of[run.placement] for run in runs]


def _run(record: Mapping[str, str]) -> AllreduceRun:
    nodes, gpus = int(record["num_nodes"]), int(record["num_gpus"])
    digits = [int(digit) for digit in record["placement"]]
    return AllreduceRun(
        model=record["model"],
        table=record["table"],
        gpus_by_node=tuple(sorted(digits or _spread_evenly(nodes, gpus))),
        batch_per_gpu=int(record["local_bsz_per_gpu"]),
        step_s=float(record["step_time_s"]),
    )


def _spread_evenly(nodes: int, gpus: int) -> list[int]:
    each, extra = divmod(gpus, nodes)
    return [each + 1] * extra + [each] * (nodes - extra)
