"""A profile as tables and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotwright.cli.terminal import print_table
from spotwright.domain.prediction import Interval
from spotwright.domain.units import format_bytes, format_duration
from spotwright.usecases.estimate_stalls import InstanceReport

if TYPE_CHECKING:
    from spotwright.profiler.exchange import ExchangeStalls
    from spotwright.profiler.loading import InputStalls
    from spotwright.profiler.profile import Profile

_Rows = list[tuple[str, str, str]]
_NONE = "-"


def print_profile(profile: "Profile", *, notes: Sequence[str]) -> None:
    """Print what was counted and measured here."""
    where = profile.device_name if profile.is_gpu else f"CPU, {profile.thread_count} threads"
    print(f"{profile.options.target} on {where}, {format_duration(profile.duration_s)}\n")
    rows = [*_counted(profile), *_timed(profile), *_fed(profile.input), *_shared(profile.exchange)]
    print_table(("figure", "value>", "interval or source"), rows)
    print_table(
        ("batch>", "step>", "line>", "off the line>"),
        [_batch_row(profile, batch) for batch in sorted(profile.steps.medians_s)],
    )
    for text in notes:
        print(f"note: {text}")


def print_instances(instances: Sequence[InstanceReport]) -> None:
    """Print what the model expects of instance types."""
    print_table(
        ("estimated on", "GPUs", "GPU memory>", "step of one>", "interconnect>", "network>",
         "prep>", "fetch>", "PCIe>", "compute from"),
        [_instance_row(one) for one in instances],
    )  # fmt: skip
    problems: dict[str, list[str]] = {}
    for one in instances:
        if one.problem:
            problems.setdefault(one.problem, []).append(one.instance_type.name)
    for problem, names in problems.items():
        print(f"note: {', '.join(names)}: {problem}")


def profile_json(
    profile: "Profile",
    instances: Sequence[InstanceReport],
    *,
    notes: Sequence[str],
    output: Path | None,
) -> dict[str, Any]:
    """Return everything that a profile says."""
    sizes, steps = profile.sizes, profile.steps
    return {
        "target": profile.options.target,
        "device": profile.device_name,
        "thread_count": profile.thread_count,
        "duration_s": profile.duration_s,
        "batch": profile.options.batch,
        "parameter_bytes": sizes.parameter_bytes,
        "parameter_count": sizes.parameter_count,
        "gradient_bytes": sizes.gradient_bytes,
        "tensor_count": sizes.tensor_count,
        "optimizer_bytes": sizes.optimizer_bytes,
        "flops_per_sample": sizes.flops_per_sample,
        "input_bytes_per_sample": sizes.input_bytes_per_sample,
        "precision": sizes.precision,
        "activation_bytes_per_sample": profile.memory.bytes_per_sample,
        "activation_source": profile.memory.source,
        "steps": [
            {"batch": b, "step_s": s, **_interval_json("line_s", steps.law.step_s(b))}
            for b, s in sorted(steps.medians_s.items())
        ],
        **_interval_json("fixed_s", steps.law.fixed_s),
        **_interval_json("per_sample_s", steps.law.per_sample_s),
        "misfit_fraction": steps.law.misfit_fraction,
        "achieved_flops": profile.achieved_flops,
        "host_memory_mbps": profile.copies.host_memory_mbps,
        "to_device_mbps": profile.copies.to_device_mbps,
        "input": _input_json(profile.input),
        "exchange": _exchange_json(profile.exchange),
        "instances": [_instance_json(one) for one in instances],
        "notes": list(notes),
        "output": str(output) if output else None,
    }


def _counted(profile: "Profile") -> _Rows:
    sizes, memory = profile.sizes, profile.memory
    per_parameter = f"{sizes.optimizer_bytes_per_parameter:.3g} bytes per parameter"
    tensors = f"{sizes.tensor_count} tensors, {sizes.precision}"
    return [
        ("parameters", format_bytes(sizes.parameter_bytes), f"{sizes.parameter_count:,}"),
        ("gradients exchanged", format_bytes(sizes.gradient_bytes), tensors),
        ("optimiser state", format_bytes(sizes.optimizer_bytes), per_parameter),
        ("FLOPs per sample", f"{sizes.flops_per_sample / 1e9:.4g} G", "forward and backward"),
        ("activations per sample", format_bytes(memory.bytes_per_sample), memory.source),
    ]


def _timed(profile: "Profile") -> _Rows:
    law, copies = profile.steps.law, profile.copies
    speed = f"{profile.achieved_flops / 1e9:.4g} GFLOP/s"
    rounds = f"{profile.steps.round_count} rounds, {profile.steps.step_count} steps"
    step = law.step_s(profile.options.batch)
    rows = [
        ("fixed time of a step", format_duration(law.fixed_s.mid), _range(law.fixed_s)),
        ("time per sample", format_duration(law.per_sample_s.mid), _range(law.per_sample_s)),
        (f"step at {profile.options.batch}", format_duration(step.mid), _range(step)),
        ("achieved", speed, rounds),
        ("copy in host memory", _rate(copies.host_memory_mbps), f"{copies.copied_bytes:.0e} bytes"),
    ]
    if copies.to_device_mbps is not None:
        rows.append(("copy to the GPU", _rate(copies.to_device_mbps), "from pinned memory"))
    return rows


def _fed(fed: "InputStalls | None") -> _Rows:
    if fed is None:
        return []
    rows = [
        ("synthetic data, G", f"{fed.synthetic_samples_per_s:,.0f} samples/s", ""),
        ("prepared, cache warm, P", f"{fed.prepared_samples_per_s:,.0f} samples/s", "one process"),
        ("prep stall of a step", format_duration(fed.prep_stall_s.mid), _range(fed.prep_stall_s)),
    ]
    if fed.fetched_samples_per_s is not None and fed.fetch_stall_s is not None:
        fetch = fed.fetch_stall_s
        rate = f"{fed.fetched_samples_per_s:,.0f} samples/s"
        rows.insert(2, ("cache dropped, F", rate, "one process"))
        rows.append(("fetch stall of a step", format_duration(fetch.mid), _range(fetch)))
    return rows


def _shared(found: "ExchangeStalls | None") -> _Rows:
    if found is None:
        return []
    stall, contention_s = found.interconnect_stall_s, max(found.beside_s - found.alone_s, 0.0)
    rows = [
        (f"interconnect stall of {found.process_count}", format_duration(stall.mid), _range(stall)),
        ("of it, sharing this host", format_duration(contention_s), ""),
    ]
    if found.network_stall_s is not None:
        network = found.network_stall_s
        rows.append(("network stall of 2 hosts", format_duration(network.mid), _range(network)))
    return rows


def _batch_row(profile: "Profile", batch: int) -> tuple[str, ...]:
    measured_s, line = profile.steps.medians_s[batch], profile.steps.law.step_s(batch)
    off = f"{measured_s / line.mid - 1:+.1%}"
    return str(batch), format_duration(measured_s), format_duration(line.mid), off


def _instance_row(one: InstanceReport) -> tuple[str, ...]:
    kind = one.instance_type
    gpus = f"{kind.gpu_count:g} x {kind.gpu_name}" if kind.gpu_name else "none"
    memory = _NONE
    if one.needed_gib is not None and one.available_gib is not None:
        memory = f"{one.needed_gib:.1f} of {one.available_gib:.1f} GiB"
    if one.stalls is None:
        return (kind.name, gpus, memory, *[_NONE] * 7)
    s = one.stalls
    return (
        kind.name,
        gpus,
        memory,
        format_duration(s.alone_s),
        *(
            f"{stall_s / s.node_s:.0%}"
            for stall_s in (s.interconnect_stall_s, s.network_stall_s, s.prep_stall_s,
                            s.fetch_stall_s)
        ),
        f"{s.pcie_fraction:.1%}",
        s.compute_source,
    )  # fmt: skip


def _input_json(fed: "InputStalls | None") -> dict[str, Any] | None:
    if fed is None:
        return None
    return {
        "synthetic_samples_per_s": fed.synthetic_samples_per_s,
        "prepared_samples_per_s": fed.prepared_samples_per_s,
        "fetched_samples_per_s": fed.fetched_samples_per_s,
        **_interval_json("prep_stall_s", fed.prep_stall_s),
        **_interval_json("fetch_stall_s", fed.fetch_stall_s),
        "loader_processes": fed.loader_processes,
        "sample_count": fed.sample_count,
        "dataset_bytes": fed.dataset_bytes,
        "left_cached_fraction": fed.left_cached_fraction,
    }


def _exchange_json(found: "ExchangeStalls | None") -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "alone_s": found.alone_s,
        "beside_s": found.beside_s,
        "together_s": found.together_s,
        "across_s": found.across_s,
        **_interval_json("interconnect_stall_s", found.interconnect_stall_s),
        **_interval_json("network_stall_s", found.network_stall_s),
        "process_count": found.process_count,
        "batch": found.batch,
    }


def _instance_json(one: InstanceReport) -> dict[str, Any]:
    stalls = one.stalls
    return {
        "instance_type": one.instance_type.name,
        "fits": one.fits,
        "needed_gib": one.needed_gib,
        "available_gib": one.available_gib,
        "problem": one.problem,
        "stalls": None
        if stalls is None
        else {name: getattr(stalls, name) for name in type(stalls).__slots__},
    }


def _interval_json(name: str, interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {name: None, f"low_{name}": None, f"high_{name}": None}
    return {name: interval.mid, f"low_{name}": interval.low, f"high_{name}": interval.high}


def _range(interval: Interval) -> str:
    return f"{format_duration(interval.low)} to {format_duration(interval.high)}"


def _rate(mbps: float) -> str:
    return f"{mbps / 8e3:.3g} GB/s"
