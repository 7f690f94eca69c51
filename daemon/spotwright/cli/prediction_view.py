"""A prediction as JSON and as tables."""

from collections.abc import Sequence
from typing import Any

from spotwright.cli.terminal import console, print_table
from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.prediction import GroupPrediction, Interval, Prediction
from spotwright.domain.units import format_duration, format_usd

_TERM_NAMES = {
    "compute": "compute",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "network": "network",
    "ps_service": "parameter server",
    "input_stall": "waiting for input",
}


def fleet_json(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the fleet as the `fleet` key of every JSON answer has it."""
    rows = [_group_json(group) for group in fleet.nodes]
    if fleet.functions:
        functions = {
            "role": "worker",
            "instance_type": f"lambda:{fleet.functions.memory_mb}",
            "zone": None,
            "market": "on-demand",
            "node_count": fleet.functions.function_count,
            "price_usd_per_hour": None,
        }
        rows.insert(0, functions)
    return rows


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """Return everything a prediction says."""
    p = prediction
    return {
        "strategy": p.strategy,
        "fleet": fleet_json(p.fleet),
        **_interval_json("iteration_s", p.iteration_s),
        "cluster_steps_per_s": p.cluster_steps_per_s,
        "samples_per_s": p.samples_per_s,
        "weighted_batch": p.weighted_batch,
        "convergence_coefficient": p.convergence_coefficient,
        "steps_to_goal": p.steps_to_goal,
        **_interval_json("duration_s", p.duration_s),
        "duration_p95_s": p.duration_p95_s,
        "deadline_probability": p.deadline_probability,
        "overall_deadline_probability": p.overall_deadline_probability,
        "uninterrupted_probability": p.uninterrupted_probability,
        **_interval_json("cost_usd", p.cost_usd),
        "traffic_usd": p.traffic_usd,
        "bottleneck": p.bottleneck,
        "network_basis": p.network_basis,
        "groups": [_group_prediction_json(group) for group in p.groups],
        "notes": list(p.notes),
    }


def print_prediction(prediction: Prediction) -> None:
    """Print where each step's time goes, then what comes of it."""
    p = prediction
    labels = [_label(p.fleet, group.group) for group in p.groups]
    print_table(
        ("seconds of one step", *(f"{label}>" for label in labels)),
        [*_term_rows(p.groups), *_group_rows(p.groups)],
    )
    out = console()
    out.print()
    print_table(("figure", "predicted>", "90 % interval"), _summary(p))
    out.print()
    for server in p.fleet.servers:
        out.print(f"parameter server: {_label(p.fleet, server)}")
    term = p.bottleneck.replace("_", " ")
    out.print(f"bottleneck: {term} (network at its {p.network_basis} rate)")
    for note in p.notes:
        out.print(f"note: {note}")


def _term_rows(groups: Sequence[GroupPrediction]) -> list[tuple[str, ...]]:
    """Return a row for each term that takes time somewhere, and their sum."""
    terms = [group.terms.by_name() for group in groups]
    rows = [
        (_TERM_NAMES[name], *(f"{mine[name]:.4f}" if mine[name] else "-" for mine in terms))
        for name in terms[0]
        if any(mine[name] for mine in terms)
    ]
    return [*rows, ("whole step", *(f"{group.step_s:.4f}" for group in groups))]


def _group_rows(groups: Sequence[GroupPrediction]) -> list[tuple[str, ...]]:
    return [
        ("batch per GPU", *(f"{group.batch_per_gpu:.4g}" for group in groups)),
        ("samples/s", *(f"{group.samples_per_s:,.1f}" for group in groups)),
        ("GPU memory", *(_memory(group) for group in groups)),
        ("compute from", *(group.compute_source for group in groups)),
    ]


def _memory(group: GroupPrediction) -> str:
    if group.memory_gib is None or group.memory_limit_gib is None:
        return "-"
    return f"{group.memory_gib:.1f} of {group.memory_limit_gib:.1f} GiB"


def _summary(p: Prediction) -> Sequence[tuple[str, str, str]]:
    rows = [
        ("iteration", *_shown(p.iteration_s, format_duration)),
        ("cluster speed", f"{p.cluster_steps_per_s:.4g} steps/s", ""),
        ("", f"{p.samples_per_s:,.1f} samples/s", ""),
        ("weighted batch", f"{p.weighted_batch:,.1f}", ""),
    ]
    if p.convergence_coefficient is not None:
        rows.append(("convergence coefficient", f"{p.convergence_coefficient:.3f}", ""))
    rows.append(("steps to the goal", f"{p.steps_to_goal:,.0f}", ""))
    rows.append(("duration", *_shown(p.duration_s, format_duration)))
    if p.deadline_probability is not None:
        rows.append(("P(deadline met)", f"{p.deadline_probability:.1%}", ""))
    if p.overall_deadline_probability is not None:
        rows.append(("with model error", f"{p.overall_deadline_probability:.1%}", ""))
    if p.cost_usd is not None:
        rows.append(("cost", *_shown(p.cost_usd, format_usd)))
    return rows


def _shown(interval: Interval, text: Any) -> tuple[str, str]:
    return text(interval.mid), f"{text(interval.low)} to {text(interval.high)}"


def _label(fleet: Fleet, group: NodeGroup | None) -> str:
    if group is None:
        functions = fleet.functions
        return f"{functions.function_count} x lambda:{functions.memory_mb}" if functions else ""
    gpus = (
        ""
        if group.gpus_per_node == group.instance_type.gpu_count
        else (f":{group.gpus_per_node:g}")
    )
    place = f" {group.offer.zone} {group.offer.market}" if group.offer else ""
    return f"{group.node_count} x {group.instance_type.name}{gpus}{place}"


def _interval_json(name: str, interval: Interval | None) -> dict[str, float | None]:
    return {
        name: interval.mid if interval else None,
        f"low_{name}": interval.low if interval else None,
        f"high_{name}": interval.high if interval else None,
    }


def _group_json(group: NodeGroup) -> dict[str, Any]:
    offer = group.offer
    return {
        "role": group.role,
        "instance_type": group.instance_type.name,
        "zone": offer.zone if offer else None,
        "market": group.market if offer else None,
        "node_count": group.node_count,
        "price_usd_per_hour": offer.price_usd_per_hour if offer else None,
    }


def _group_prediction_json(group: GroupPrediction) -> dict[str, Any]:
    return {
        "instance_type": group.group.instance_type.name if group.group else "lambda",
        "node_count": group.group.node_count if group.group else None,
        "batch_per_gpu": group.batch_per_gpu,
        "step_s": group.step_s,
        "terms_s": group.terms.by_name(),
        "samples_per_s": group.samples_per_s,
        "memory_gib": group.memory_gib,
        "memory_limit_gib": group.memory_limit_gib,
        "compute_source": group.compute_source,
    }
