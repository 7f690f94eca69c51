"""What is trained, drawn at random: a goal of half an hour to a week or so on a typical node."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spotwright.domain.hardware import InstanceType
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.workload import (
    AllreduceTuning,
    BatchRule,
    ComputeProfile,
    Contention,
    CynthiaLoss,
    Dataset,
    FixedBatch,
    GlobalBatch,
    InputPipeline,
    Lifetimes,
    LossLaw,
    MemoryBatch,
    MemoryUse,
    ModelSize,
    NoiseScaleLaw,
    ParameterServing,
    SpotBehaviour,
    SpotdnnLoss,
    Strategy,
    Workload,
)
from tests.planner.dice import Dice


def random_workload(
    dice: Dice, strategy: Strategy, types: Sequence[InstanceType]
) -> tuple[Workload, Target]:
    model = ModelSize(
        parameter_bytes=dice.scale(1e6, 1e9),
        tensor_count=dice.pick((1, 20, 200)),
        flops_per_sample=1e10,
    )
    size = dice.whole(4, 128)
    batch = _batch(dice, strategy, types, size)
    step_s = dice.scale(0.02, 2)
    compute = _compute(dice, types, step_s / size)
    steps = dice.scale(0.5, 200) * 3600 / (step_s + 16 * model.parameter_bytes / 5e9)
    law = _law(dice, strategy, steps, _batch_range(batch, types, size))
    serving, tuning = _serving(dice), _tuning(dice)
    work = Workload(
        strategy=strategy,
        model=model,
        batch=batch,
        compute=compute,
        memory=_memory(dice, types, size) if dice.chance(0.25) else MemoryUse(),
        parameter_serving=serving if strategy.uses_parameter_servers else None,
        allreduce=tuning if strategy is Strategy.ALLREDUCE else None,
        convergence=law,
        dataset=Dataset(sample_count=steps, size_bytes=steps * 1e5, tokens_per_sample=10.0),
        input=_input(dice, size / step_s) if dice.chance(0.25) else None,
        spot=_spot(dice, types),
    )
    if work.memory.zero_stage or work.memory.activation_bytes_per_sample:
        model = replace(model, parameter_count=_tight_parameters(dice, work, types))
        work = replace(work, model=model)
    return work, _target(dice, law, steps, size)


def _batch(dice: Dice, strategy: Strategy, types: Sequence[InstanceType], size: int) -> BatchRule:
    if strategy is not Strategy.ASP_PS and dice.chance(0.45):
        largest = dice.pick((None, max(1, size // 4), size))
        return GlobalBatch(sample_count=size * dice.whole(1, 12), max_per_gpu_count=largest)
    if dice.chance(0.2):
        return MemoryBatch(per_gib=size / 16)
    if dice.chance(0.3):
        return FixedBatch(per_gpu_count=size)
    spread = {t.name: max(1, round(size * dice.scale(0.3, 3))) for t in types}
    return FixedBatch(by_device=spread)


def _batch_range(batch: BatchRule, types: Sequence[InstanceType], size: int) -> tuple[float, float]:
    """Return the least and the largest batch of a node, about."""
    by_type = batch.by_device if isinstance(batch, FixedBatch) else {}
    batches = [by_type.get(t.name, size) * max(1.0, t.gpu_count) for t in types]
    return min(batches), max(batches)


def _compute(
    dice: Dice, types: Sequence[InstanceType], per_sample_s: float
) -> dict[str, ComputeProfile]:
    profiles = {}
    for kind in types:
        profile = ComputeProfile(
            fixed_s=dice.pick((0.0, dice.scale(0.1, 20) * per_sample_s)),
            per_sample_s=per_sample_s * dice.scale(0.2, 5),
            knee=dice.pick((1.0, 1.0, 2.0, 8.0)),
            relative_sd=dice.pick((None, 0.0, 0.1)),
        )
        by_type = kind.gpu_name is None or dice.chance(0.5)
        profiles[kind.name if by_type else kind.gpu_name or ""] = profile
    if len(types) > 2 and types[-1].gpu_name and dice.chance(0.2):
        profiles.pop(types[-1].name, None)  # by its GPU, or by those of the others
    return profiles


def _law(
    dice: Dice, strategy: Strategy, steps: float, batches: tuple[float, float]
) -> LossLaw | None:
    """Return a law under which the loss of 0.5 above its floor takes about so many steps."""
    kinds = ["cynthia", "noise-scale", "none"]
    if strategy is Strategy.ASP_PS:
        kinds += ["spotdnn"] * 4
    match dice.pick(kinds):
        case "cynthia":
            return CynthiaLoss(k0=steps / 2, k1=dice.pick((0.0, 0.3)))
        case "noise-scale":
            noise = batches[1] * dice.scale(0.1, 20)
            return NoiseScaleLaw(minimum_steps=steps / 2, noise_scale_samples=noise, loss=0.8)
        case "spotdnn":
            return _spotdnn(dice, steps, batches)
    return None


def _spotdnn(dice: Dice, steps: float, batches: tuple[float, float]) -> SpotdnnLoss:
    low, high = batches[0] / 2, batches[1] * 2
    if dice.chance(0.3):  # part of the fleets only
        middle = dice.between(*batches)
        low, high = (middle * dice.between(0.5, 1), middle * dice.between(1, 1.5))
    c3 = steps / 2
    return SpotdnnLoss(
        c1=dice.pick((0.0, 0.0, 0.01, 0.05, 0.3)) * steps,
        c2=dice.pick((0.0, -dice.between(0.0, 0.9), -dice.between(0.5, 0.99))) * c3 / high,
        c3=c3,
        c4=dice.pick((0.0, 0.05, 0.05, 0.2, 0.2, 1.0)),
        c5=dice.pick((0.0, 0.3)),
        batch_range=(low, high),
        coefficient_range=dice.pick(((0.0, 1.0), (0.0, 1.0), (0.0, 0.8), (0.3, 0.9), (0.0, 0.0))),
    )


def _target(dice: Dice, law: LossLaw | None, steps: float, size: int) -> Target:
    if isinstance(law, NoiseScaleLaw):
        return Target(kind=TargetKind.LOSS, value=law.loss)
    if law is not None and dice.chance(0.9):
        return Target(kind=TargetKind.LOSS, value=law.floor_loss + 0.5)
    kind = dice.pick((TargetKind.STEPS, TargetKind.SAMPLES, TargetKind.SAMPLES, TargetKind.EPOCHS))
    value = {TargetKind.STEPS: steps, TargetKind.SAMPLES: steps * size * 4}.get(kind, size * 4.0)
    return Target(kind=kind, value=value)


def _serving(dice: Dice) -> ParameterServing:
    queueing, free = dice.chance(0.6), {"cpu_s_per_tensor": 0.0, "cpu_s_per_byte": 0.0}
    other = dice.pick((Contention.SPOTDNN, Contention.NONE))
    costs: dict[str, Any] = dice.pick(({}, free, {"cpu_s_per_byte": 1e-8}))
    return ParameterServing(
        contention=Contention.QUEUEING if queueing else other,
        overlap_fraction=dice.pick((0.0, 0.5, 1.0)),
        bandwidth_mbps=dice.pick((None, None, 2_000.0)),
        requested_mbps=dice.scale(200, 5_000),
        contention_slope=dice.between(0.05, 0.4),
        contention_offset=dice.between(-0.3, 0.2),
        largest_shard_fraction=dice.pick((1.0, 0.6, 0.0)),
        **costs,
    )


def _tuning(dice: Dice) -> AllreduceTuning:
    if dice.chance(0.5):
        return AllreduceTuning()
    return AllreduceTuning(
        head_fraction=dice.between(0, 1),
        overlap_power=dice.pick((1.0, 4.0, 16.0)),
        gpu_spread_fraction=dice.pick((0.0, 0.1)),
        two_node_loss=dice.pick((None, 0.0, 0.5)),
        hop_loss=dice.pick((None, 0.0, 0.05)),
    )


def _input(dice: Dice, samples_per_s: float) -> InputPipeline:
    return InputPipeline(
        prep_samples_per_s_per_vcpu=samples_per_s * dice.scale(0.01, 2),
        cached_fraction=dice.pick((1.0, 0.5)),
    )


def _spot(dice: Dice, types: Sequence[InstanceType]) -> SpotBehaviour:
    lifetimes = {}
    for kind in types:
        if dice.chance(0.2):
            hours = tuple(dice.scale(0.3, 30) for _ in range(4))
            lifetimes[kind.name] = Lifetimes(hours=hours, revoked=(True, True, True, False))
    return SpotBehaviour(
        checkpoint_s=dice.pick((None, None, 1.0, 60.0, 900.0)),
        restart_s=dice.pick((0.0, 120.0, 120.0, 1800.0, 14400.0)),
        common_shock_fraction=dice.pick((0.0, 0.5, 0.5, 1.0)),
        lifetimes=lifetimes,
    )


def _memory(dice: Dice, types: Sequence[InstanceType], size: int) -> MemoryUse:
    """Return a use of memory that the smallest of these GPUs may not have."""
    least = min((t.gpu_memory_gib for t in types if t.gpu_name), default=16.0) * 2**30
    return MemoryUse(
        optimizer_bytes_per_parameter=dice.pick((8.0, 12.0)),
        activation_bytes_per_sample=least / size * dice.pick((0.0, 0.2, 0.6)),
        reserved_bytes=1e8,
        zero_stage=dice.whole(0, 3),
    )


def _tight_parameters(dice: Dice, work: Workload, types: Sequence[InstanceType]) -> float:
    """Return how many parameters fill a GPU: several times over where ZeRO spreads them."""
    least = min((t.gpu_memory_gib for t in types if t.gpu_name), default=16.0) * 2**30
    times = dice.scale(0.3, 6) if work.memory.zero_stage else dice.scale(0.2, 1.2)
    return times * least / (8 + work.memory.optimizer_bytes_per_parameter)
