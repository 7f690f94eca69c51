"""From the keys people write to domain values."""

from collections.abc import Sequence
from datetime import datetime

from spotwright.adapters.jobfile import schema
from spotwright.domain import workload as work
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Pool


def job_specs(file: schema.JobFile) -> dict[str, JobSpec]:
    """Translate a validated job file: one job for each model in it."""
    return {
        model: JobSpec(
            name=file.name,
            workload=workload(section),
            goal=_goal(file.goal),
            limits=_limits(file.limits, section.strategy),
        )
        for model, section in file.by_model().items()
    }


def workload(section: schema.WorkloadSection) -> work.Workload:
    """Translate the workload section."""
    return work.Workload(
        strategy=section.strategy,
        model=_model(section.model),
        batch=_batch(section.batch),
        compute={device: _compute(entry) for device, entry in section.compute.items()},
        efficiency_fraction=section.efficiency,
        memory=_memory(section.model.memory),
        parameter_serving=_parameter_serving(section),
        allreduce=_allreduce(section),
        serverless=_serverless(section.serverless),
        convergence=_convergence(section.convergence),
        dataset=_dataset(section.dataset),
        input=_input(section.input),
        spot=work.SpotBehaviour(
            checkpoint_s=section.spot.checkpoint,
            restart_s=section.spot.restart,
            common_shock_fraction=section.spot.common_shock,
            lifetimes={
                name: work.Lifetimes(hours=tuple(found.hours), revoked=tuple(found.revoked))
                for name, found in section.spot.lifetimes.items()
            },
        ),
        pcie_mbps=section.pcie,
        interval=_interval(section.interval),
    )


def _model(section: schema.ModelSection) -> work.ModelSize:
    return work.ModelSize(
        parameter_bytes=section.parameter_size,
        tensor_count=section.tensors,
        flops_per_sample=section.flops_per_sample,
        precision=section.precision,
        parameter_count=section.parameters,
    )


def _memory(section: schema.MemorySection) -> work.MemoryUse:
    return work.MemoryUse(
        optimizer_bytes_per_parameter=section.optimizer_bytes_per_parameter,
        activation_bytes_per_sample=section.activations_per_sample or 0.0,
        reserved_bytes=section.reserved,
        zero_stage=section.zero_stage,
    )


def _compute(entry: schema.ComputeEntry) -> work.ComputeProfile:
    if entry.step is not None and entry.batch is not None:
        fixed_s, per_sample_s = 0.0, entry.step / entry.batch
    else:
        fixed_s, per_sample_s = entry.fixed or 0.0, entry.per_sample or 0.0
    return work.ComputeProfile(
        fixed_s=fixed_s, per_sample_s=per_sample_s, knee=entry.knee, relative_sd=entry.spread
    )


def _batch(section: schema.BatchSection | None) -> work.BatchRule | None:
    if section is None:
        return None
    if section.by_memory is not None:
        return work.MemoryBatch(per_gib=section.by_memory.per_gib, offset=section.by_memory.offset)
    if section.whole is not None:
        return work.GlobalBatch(sample_count=section.whole, max_per_gpu_count=section.max_per_gpu)
    return work.FixedBatch(per_gpu_count=section.per_gpu, by_device=section.per_gpu_by_device or {})


def _parameter_serving(section: schema.WorkloadSection) -> work.ParameterServing | None:
    if not section.strategy.uses_parameter_servers:
        return None
    server = section.parameter_server or schema.ParameterServerSection()
    return work.ParameterServing(
        default_type=server.type,
        default_count=server.count,
        contention=server.contention,
        cpu_s_per_tensor=server.cpu_per_tensor,
        cpu_s_per_byte=server.cpu_per_mb / 1e6,
        overlap_fraction=server.overlap,
        bandwidth_mbps=server.bandwidth,
        requested_mbps=server.requested_bandwidth,
        contention_slope=server.contention_slope,
        contention_offset=server.contention_offset,
        largest_shard_fraction=server.largest_shard,
    )


def _allreduce(section: schema.WorkloadSection) -> work.AllreduceTuning | None:
    if section.strategy is not work.Strategy.ALLREDUCE:
        return None
    tuning = section.allreduce or schema.AllreduceSection()
    return work.AllreduceTuning(
        head_fraction=tuning.head,
        buckets=tuple(
            work.GradientBucket(ready_fraction=bucket.ready, bytes_fraction=bucket.share)
            for bucket in tuning.buckets
        ),
        overlap_power=tuning.overlap_power,
        gpu_spread_fraction=tuning.gpu_spread,
        link_spread_fraction=tuning.link_spread,
        two_node_loss=tuning.two_node_loss,
        hop_loss=tuning.hop_loss,
        compression_ratio=tuning.compression,
        links={
            name: work.Links(
                network_mbps=links.network, intra_mbps=links.intra, sharing_fraction=links.sharing
            )
            for name, links in tuning.links.items()
        },
    )


def _serverless(section: schema.ServerlessSection | None) -> work.ServerlessLaw | None:
    if section is None:
        return None
    storage, line, curve = (
        section.storage_mb_per_s,
        section.samples_per_s,
        section.seconds_per_sample,
    )
    mbps_per_mb, mbps_offset = (8 * storage.per_mb, 8 * storage.offset) if storage else (0.0, 920.0)
    return work.ServerlessLaw(
        samples_per_s_per_mb=line.per_mb if line else None,
        samples_per_s_offset=line.offset if line else 0.0,
        s_per_sample=curve.base if curve else 0.0,
        mb_s_per_sample=curve.per_memory if curve else None,
        storage_mbps_per_mb=mbps_per_mb,
        storage_mbps_offset=mbps_offset,
        storage_max_mbps=section.storage_max,
        function_max_mbps=section.function_max,
        batch_per_function_count=section.batch_per_function,
        max_global_batch_count=section.max_global_batch,
        timeout_s=section.timeout,
        checkpoint_margin_s=section.checkpoint_margin,
        resume_s=section.resume,
        usd_per_gib_s=section.usd_per_gib_s,
    )


def _interval(section: schema.IntervalSection | None) -> work.StepInterval | None:
    if section is None:
        return None
    return work.StepInterval(
        low_quantile=section.low,
        high_quantile=section.high,
        base_scale=section.base,
        network_scale=section.network,
    )


def _convergence(section: schema.Convergence | None) -> work.LossLaw | None:
    match section:
        case None:
            return None
        case schema.SpotdnnSection():
            return work.SpotdnnLoss(
                c1=section.c1,
                c2=section.c2,
                c3=section.c3,
                c4=section.c4,
                c5=section.c5,
                batch_range=section.fitted_batch,
                coefficient_range=section.fitted_coefficient,
                relative_sd=section.spread,
            )
        case schema.CynthiaSection():
            return work.CynthiaLoss(
                k0=section.k0,
                k1=section.k1,
                k2=section.k2,
                worker_exponent=section.worker_exponent,
                relative_sd=section.spread,
            )
        case schema.NoiseScaleSection():
            return work.NoiseScaleLaw(
                minimum_steps=section.minimum_steps,
                noise_scale_samples=section.noise_scale,
                loss=section.loss,
                relative_sd=section.spread,
            )


def _dataset(section: schema.DatasetSection | None) -> work.Dataset | None:
    if section is None:
        return None
    return work.Dataset(
        sample_count=section.samples,
        size_bytes=section.size,
        tokens_per_sample=section.tokens_per_sample,
    )


def _input(section: schema.InputSection | None) -> work.InputPipeline | None:
    if section is None:
        return None
    return work.InputPipeline(
        prep_samples_per_s_per_vcpu=section.prep_per_vcpu,
        cached_fraction=section.cached,
        disk_mbps=section.disk,
        memory_mbps=section.memory,
    )


def _goal(section: schema.GoalSection) -> Goal:
    targets = {kind: getattr(section, kind.value) for kind in TargetKind}
    kind, value = next((k, v) for k, v in targets.items() if v is not None)
    return Goal(
        target=Target(kind=kind, value=value),
        deadline_s=section.deadline,
        budget_usd=section.budget,
        confidence_fraction=section.confidence,
    )


def _limits(section: schema.LimitsSection, strategy: work.Strategy) -> Limits:
    usual = Placement.ONE_ZONE if strategy is work.Strategy.ALLREDUCE else Placement.ONE_REGION
    return Limits(
        cloud=section.cloud,
        regions=frozenset(section.regions),
        zones=frozenset(section.zones),
        instance_types=frozenset(section.types),
        gpus=frozenset(section.gpus),
        markets=frozenset(section.markets),
        excluded_types=frozenset(section.exclude_types),
        excluded_pools=_excluded_pools(section.exclude_pools),
        min_count_by_pool=section.pin_pools,
        parameter_server_types=frozenset(section.parameter_server_types),
        spot_parameter_servers=section.spot_parameter_servers,
        max_parameter_servers=section.max_parameter_servers,
        max_count_by_type=section.max_count,
        max_count_per_pool=section.max_count_per_pool,
        max_vcpus={
            (quota_class, market): count
            for market, classes in section.max_vcpus.items()
            for quota_class, count in classes.items()
        },
        max_nodes=section.max_nodes,
        max_pools=section.max_pools,
        min_on_demand_fraction=section.min_on_demand,
        max_price_by_type_usd_per_hour=section.max_price,
        max_usd_per_hour=section.max_usd_per_hour,
        placement=section.placement or usual,
        network=section.network,
    )


def _excluded_pools(entries: Sequence[schema.ExcludedPool]) -> dict[Pool, datetime | None]:
    return dict(
        (entry.pool, entry.until) if isinstance(entry, schema.CoolDownSection) else (entry, None)
        for entry in entries
    )
