"""Write jobs as a file that `read` reads back: fitted figures to six digits, nothing usual."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import yaml

from spotwright.domain import workload as work
from spotwright.domain.job import Goal, JobSpec, Limits, Placement
from spotwright.domain.offer import Pool

Section = dict[str, Any]


def job_text(jobs: Mapping[str, JobSpec], *, comment: str = "") -> str:
    """Return the YAML of one job, or of several that differ in their workload only."""
    first = next(iter(jobs.values()))
    document: Section = {"name": first.name}
    if len(jobs) == 1:
        document["workload"] = _workload(first.workload)
    else:
        document["workloads"] = {m: _workload(j.workload) for m, j in jobs.items()}
    document["goal"] = _goal(first.goal)
    limits = _limits(list(jobs.values()))
    document |= {"limits": limits} if limits else {}
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return "".join(f"# {line}\n" for line in comment.splitlines()) + str(body)


def _workload(workload: work.Workload) -> Section:
    model, usual = workload.model, work.Workload(strategy=workload.strategy, model=workload.model)
    return _given(
        strategy=str(workload.strategy),
        model=_given(
            parameter_size=_bytes(model.parameter_bytes),
            parameters=_kept(model.parameter_count),
            tensors=model.tensor_count,
            flops_per_sample=_kept(model.flops_per_sample),
            precision=str(model.precision),
            memory=_memory(workload.memory),
        ),
        batch=_batch(workload.batch),
        compute={name: _compute(profile) for name, profile in sorted(workload.compute.items())},
        efficiency=_unless(workload.efficiency_fraction, usual.efficiency_fraction),
        parameter_server=_parameter_server(workload.parameter_serving),
        allreduce=_allreduce(workload.allreduce),
        serverless=_serverless(workload.serverless),
        convergence=_convergence(workload.convergence),
        dataset=_dataset(workload.dataset),
        input=_input(workload.input),
        spot=_spot(workload.spot),
        pcie=_rate(workload.pcie_mbps),
        interval=_interval(workload.interval),
    )


def _memory(memory: work.MemoryUse) -> Section:
    usual = work.MemoryUse()
    activations = memory.activation_bytes_per_sample
    return _given(
        optimizer_bytes_per_parameter=_unless(
            memory.optimizer_bytes_per_parameter, usual.optimizer_bytes_per_parameter
        ),
        activations_per_sample=_bytes(activations) if activations else None,
        reserved=_bytes(memory.reserved_bytes) if memory != usual else None,
        zero_stage=memory.zero_stage or None,
    )


def _compute(profile: work.ComputeProfile) -> Section:
    return _given(
        fixed=_seconds(profile.fixed_s) if profile.fixed_s else None,
        per_sample=_seconds(profile.per_sample_s),
        knee=_unless(profile.knee, 1.0),
        spread=_number(profile.relative_sd),
    )


def _batch(rule: work.BatchRule | None) -> Section | None:
    match rule:
        case work.FixedBatch():
            return _given(per_gpu=rule.per_gpu_count, per_gpu_by_device=dict(rule.by_device))
        case work.MemoryBatch():
            return {"by_memory": {"per_gib": rule.per_gib, "offset": rule.offset}}
        case work.GlobalBatch():
            return _given(whole=rule.sample_count, max_per_gpu=rule.max_per_gpu_count)
        case None:
            return None


def _parameter_server(serving: work.ParameterServing | None) -> Section | None:
    if serving is None:
        return None
    return _given(
        type=serving.default_type,
        count=_unless(serving.default_count, 1),
        contention=str(serving.contention),
        cpu_per_tensor=_seconds(serving.cpu_s_per_tensor),
        cpu_per_mb=_seconds(serving.cpu_s_per_byte * 1e6),
        overlap=serving.overlap_fraction or None,
        bandwidth=_rate(serving.bandwidth_mbps),
        requested_bandwidth=_rate(serving.requested_mbps),
        contention_slope=_number(serving.contention_slope),
        contention_offset=_number(serving.contention_offset),
        largest_shard=_unless(serving.largest_shard_fraction, 1.0),
    )


def _allreduce(tuning: work.AllreduceTuning | None) -> Section | None:
    if tuning is None:
        return None
    usual = work.AllreduceTuning()
    return _given(
        head=_unless(tuning.head_fraction, usual.head_fraction),
        buckets=[
            {"ready": _number(bucket.ready_fraction), "share": _number(bucket.bytes_fraction)}
            for bucket in tuning.buckets
        ]
        or None,
        overlap_power=_unless(tuning.overlap_power, usual.overlap_power),
        gpu_spread=_unless(tuning.gpu_spread_fraction, usual.gpu_spread_fraction),
        link_spread=_number(tuning.link_spread_fraction),
        two_node_loss=_number(tuning.two_node_loss),
        hop_loss=_number(tuning.hop_loss),
        compression=_unless(tuning.compression_ratio, usual.compression_ratio),
        links={
            name: _given(
                network=_rate(links.network_mbps),
                intra=_rate(links.intra_mbps),
                sharing=_number(links.sharing_fraction),
            )
            for name, links in sorted(tuning.links.items())
        },
    )


def _serverless(law: work.ServerlessLaw | None) -> Section | None:
    if law is None:
        return None
    line = {"per_mb": law.samples_per_s_per_mb, "offset": law.samples_per_s_offset}
    curve = {"base": _number(law.s_per_sample), "per_memory": _number(law.mb_s_per_sample)}
    fitted = law.mb_s_per_sample is not None
    section = _given(
        samples_per_s=None if fitted else line,
        seconds_per_sample=curve if fitted else None,
        storage_mb_per_s={
            "per_mb": _number(law.storage_mbps_per_mb / 8),
            "offset": _number(law.storage_mbps_offset / 8),
        },
        storage_max=_rate(law.storage_max_mbps),
        batch_per_function=law.batch_per_function_count,
        max_global_batch=law.max_global_batch_count,
        timeout=_seconds(law.timeout_s),
        checkpoint_margin=_seconds(law.checkpoint_margin_s),
        resume=_seconds(law.resume_s),
        usd_per_gib_s=law.usd_per_gib_s,
    )
    return section | {"function_max": _rate(law.function_max_mbps)}  # null is a value here


def _convergence(law: work.LossLaw | None) -> Section | None:
    match law:
        case None:
            return None
        case work.SpotdnnLoss():
            coefficients = {name: _number(getattr(law, name)) for name in _SPOTDNN}
            return {
                "law": "spotdnn",
                **coefficients,
                "fitted_batch": [_number(end) for end in law.batch_range],
                "fitted_coefficient": [_number(end) for end in law.coefficient_range],
                "spread": _number(law.relative_sd),
            }
        case work.CynthiaLoss():
            values = {name: getattr(law, name) for name in _CYNTHIA} | {"spread": law.relative_sd}
            return {"law": "cynthia"} | {k: _number(v) for k, v in values.items()}
        case work.NoiseScaleLaw():
            return {
                "law": "noise-scale",
                "minimum_steps": _number(law.minimum_steps),
                "noise_scale": _number(law.noise_scale_samples),
                "loss": _number(law.loss),
                "spread": _number(law.relative_sd),
            }


_SPOTDNN = ("c1", "c2", "c3", "c4", "c5")
_CYNTHIA = ("k0", "k1", "k2", "worker_exponent")


def _dataset(dataset: work.Dataset | None) -> Section | None:
    if dataset is None:
        return None
    return _given(
        samples=_kept(dataset.sample_count),
        size=_bytes(dataset.size_bytes) if dataset.size_bytes else None,
        tokens_per_sample=_kept(dataset.tokens_per_sample),
    )


def _input(pipeline: work.InputPipeline | None) -> Section | None:
    if pipeline is None:
        return None
    return _given(
        prep_per_vcpu=_kept(pipeline.prep_samples_per_s_per_vcpu),
        cached=pipeline.cached_fraction,
        disk=_rate(pipeline.disk_mbps),
        memory=_rate(pipeline.memory_mbps),
    )


def _spot(spot: work.SpotBehaviour) -> Section:
    usual = work.SpotBehaviour()
    return _given(
        checkpoint=_seconds(spot.checkpoint_s) if spot.checkpoint_s else None,
        restart=_seconds(spot.restart_s) if spot != usual else None,
        common_shock=_unless(spot.common_shock_fraction, usual.common_shock_fraction),
        lifetimes={
            name: {"hours": [_number(h) for h in found.hours], "revoked": list(found.revoked)}
            for name, found in sorted(spot.lifetimes.items())
        },
    )


def _interval(interval: work.StepInterval | None) -> Section | None:
    if interval is None:
        return None
    return {
        "low": _number(interval.low_quantile),
        "high": _number(interval.high_quantile),
        "base": _number(interval.base_scale),
        "network": _number(interval.network_scale),
    }


def _goal(goal: Goal) -> Section:
    return _given(
        **{str(goal.target.kind): _kept(goal.target.value)},
        deadline=_seconds(goal.deadline_s) if goal.deadline_s else None,
        budget=_kept(goal.budget_usd),
        confidence=_unless(goal.confidence_fraction, 0.95),
    )


def _limits(jobs: Sequence[JobSpec]) -> Section:
    """Write the limits that restrict; what is usual for placement depends on the strategy."""
    limits, usual = jobs[0].limits, Limits(placement=jobs[0].limits.placement)
    section: Section = {}
    for field in fields(Limits):
        value = getattr(limits, field.name)
        if value != getattr(usual, field.name):
            section[_LIMIT_KEYS.get(field.name, field.name)] = _plain(field.name, value)
    if any(job.limits.placement is not _usual_placement(job.workload.strategy) for job in jobs):
        section["placement"] = str(limits.placement)
    return section


def _usual_placement(strategy: work.Strategy) -> Placement:
    return Placement.ONE_ZONE if strategy is work.Strategy.ALLREDUCE else Placement.ONE_REGION


_LIMIT_KEYS = {
    "instance_types": "types",
    "excluded_types": "exclude_types",
    "excluded_pools": "exclude_pools",
    "min_count_by_pool": "pin_pools",
    "max_count_by_type": "max_count",
    "min_on_demand_fraction": "min_on_demand",
    "max_price_by_type_usd_per_hour": "max_price",
}


def _plain(name: str, value: Any) -> Any:
    if name == "max_vcpus":
        nested: dict[str, dict[str, int]] = {}
        for (quota_class, market), count in sorted(value.items()):
            nested.setdefault(str(market), {})[quota_class] = count
        return nested
    if name == "excluded_pools":
        return [_excluded_pool(pool, value[pool]) for pool in sorted(value)]
    if isinstance(value, frozenset):
        return sorted(str(item) for item in value)
    if isinstance(value, Mapping):
        return {str(key): item for key, item in sorted(value.items())}
    return value if isinstance(value, bool | int | float) else str(value)


def _excluded_pool(pool: Pool, until: datetime | None) -> str | Section:
    if until is None:
        return str(pool)
    return {"pool": str(pool), "until": until.isoformat().replace("+00:00", "Z")}


def _given(**items: Any) -> Section:
    """Leave out what is None or empty."""
    return {key: value for key, value in items.items() if value is not None and value != {}}


def _unless(value: float, usual: float) -> float | None:
    return None if value == usual else _number(value)


def _number(value: float | None) -> float | None:
    """Round a fitted figure to what a person can read."""
    return None if value is None else _kept(float(f"{value:.6g}"))


def _kept(value: float | None) -> float | None:
    """Write a figure that people gave as they gave it."""
    if value is None:
        return None
    rounded = float(f"{value:.15g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def _seconds(seconds: float) -> str:
    return f"{seconds:.6g} s"


def _bytes(size: float) -> str:
    return f"{size / 1e6:.10g} MB"


def _rate(mbps: float | None) -> str | None:
    return None if mbps is None else f"{mbps:.6g} Mbit/s"
