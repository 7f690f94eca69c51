"""JSON Schema of one row of a measurements file, each cell under the name of its column."""

from typing import Any

from spotwright.domain.workload import Strategy


def _cell(kind: str, description: str, **rules: Any) -> dict[str, Any]:
    return {"type": kind, "description": description} | rules


def _positive(kind: str, description: str) -> dict[str, Any]:
    return _cell(kind, description, exclusiveMinimum=0)


ROW_SCHEMA: dict[str, Any] = {
    "title": "Measurement",
    "description": "One row of a CSV: a short run, inside the network's burst; `predict --configs` "
    "leaves the measured speed empty.",
    "type": "object",
    "required": ["strategy", "fleet", "batch_per_gpu"],
    "properties": {
        "strategy": _cell("string", "how gradients are exchanged", enum=[str(s) for s in Strategy]),
        "fleet": _cell("string", "a fleet expression of workers, such as g4dn.12xlarge:4*2"),
        "ps_count": _positive("integer", "parameter servers"),
        "ps_type": _cell("string", "their instance type"),
        "batch_per_gpu": _positive("integer", "samples per GPU and step"),
        "model": _cell("string", "its name; models are fitted apart"),
        "parameter_bytes": _positive("number", "bytes exchanged in each step"),
        "tensor_count": _positive("integer", "parameter tensors"),
        "flops_per_sample": _positive("number", "operations, forward and backward"),
        "step_s": _positive("number", "seconds per step; asynchronous only with equal workers"),
        "cluster_steps_per_s": _positive("number", "worker steps per second of the cluster"),
    },
}
