"""Values of the domain, drawn at random, with every digit and every absence that they may have."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from spotwright.domain.errors import NoFeasibleFleetError
from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.offer import Market, Offer, OfferQuery, Pool
from spotwright.domain.plan import (
    Alternative,
    FrontierPoint,
    Objective,
    Plan,
    PlanStatus,
    PoolChange,
    Saving,
    SmallestChange,
)
from spotwright.domain.prediction import (
    GroupPrediction,
    Interval,
    LinkRates,
    Prediction,
    StepTerms,
)
from spotwright.domain.questions import (
    ComparedFleet,
    GoalOverride,
    JobDocument,
    NoFleet,
    PlannedFleet,
    PlanQuestion,
    PlanSummary,
    Rival,
    RowPrediction,
)
from spotwright.domain.workload import Strategy

texts = st.text(max_size=8)
names = st.text(min_size=1, max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=5e-324, allow_infinity=False)
fractions = st.floats(0, 1, exclude_max=True)
inner_fractions = st.floats(0, 1, exclude_min=True, exclude_max=True)
limits = st.floats(allow_nan=False)  # a limit that is not set is infinite
counts = st.integers(1, 2**31 - 1)
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=2).map(tuple)


gpus = st.builds(
    Gpu,
    name=names,
    architecture=texts,
    memory_gib=positive,
    memory_mbps=maybe(numbers),
    fp32_flops=maybe(numbers),
    fp16_flops=maybe(numbers),
    bf16_flops=maybe(numbers),
)


@st.composite
def instance_types(draw: st.DrawFn) -> InstanceType:
    gpu_name = draw(maybe(names))
    return InstanceType(
        name=draw(names),
        cloud=draw(st.sampled_from(Cloud)),
        vcpu_count=draw(positive),
        memory_gib=draw(positive),
        gpu_name=gpu_name,
        gpu_count=draw(positive) if gpu_name is not None else 0.0,
        gpu_memory_gib=draw(numbers),
        network_baseline_mbps=draw(maybe(numbers)),
        network_peak_mbps=draw(maybe(numbers)),
        network_card_count=draw(counts),
        efa_interface_count=draw(counts),
        pcie_mbps=draw(maybe(numbers)),
        nvlink_mbps=draw(numbers),
        local_disk_gb=draw(numbers),
        disk_mbps=draw(maybe(numbers)),
        quota_class=draw(maybe(texts)),
        retired=draw(st.booleans()),
    )


def offers(instance_type: InstanceType) -> st.SearchStrategy[Offer]:
    return st.builds(
        Offer,
        instance_type=st.just(instance_type),
        region=texts,
        zone=texts,
        market=st.sampled_from(Market),
        price_usd_per_hour=positive,
        interruption_fraction=maybe(fractions),
    )


@st.composite
def groups(draw: st.DrawFn) -> NodeGroup:
    instance_type = draw(instance_types())
    return NodeGroup(
        role=draw(st.sampled_from(Role)),
        instance_type=instance_type,
        node_count=draw(counts),
        gpus_per_node=draw(st.sampled_from([0.0, instance_type.gpu_count])),
        offer=draw(maybe(offers(instance_type))),
    )


functions = st.builds(FunctionGroup, memory_mb=counts, function_count=counts)
fleets = st.builds(Fleet, nodes=few(groups()), functions=maybe(functions))
intervals = st.lists(numbers, min_size=3, max_size=3).map(
    lambda figures: Interval(*sorted(figures))
)
terms = st.builds(
    StepTerms,
    compute_s=numbers,
    pcie_s=numbers,
    nvlink_s=numbers,
    network_s=numbers,
    ps_service_s=numbers,
    input_stall_s=numbers,
)
group_predictions = st.builds(
    GroupPrediction,
    group=maybe(groups()),
    batch_per_gpu=numbers,
    step_s=numbers,
    terms=terms,
    samples_per_s=numbers,
    memory_gib=maybe(numbers),
    memory_limit_gib=maybe(numbers),
    compute_source=texts,
    rates=st.builds(
        LinkRates,
        network_mbps=maybe(numbers),
        pcie_mbps=maybe(numbers),
        nvlink_mbps=maybe(numbers),
    ),
)
predictions = st.builds(
    Prediction,
    strategy=st.sampled_from(Strategy),
    fleet=fleets,
    groups=few(group_predictions),
    iteration_s=intervals,
    cluster_steps_per_s=numbers,
    samples_per_s=numbers,
    weighted_batch=numbers,
    convergence_coefficient=maybe(numbers),
    steps_to_goal=numbers,
    duration_s=intervals,
    duration_p95_s=numbers,
    deadline_probability=maybe(numbers),
    overall_deadline_probability=maybe(numbers),
    uninterrupted_probability=numbers,
    cost_usd=maybe(intervals),
    traffic_usd=numbers,
    bottleneck=texts,
    network_basis=texts,
    notes=few(texts),
)
compared = st.builds(
    ComparedFleet, prediction=predictions, broken=few(texts), will_do=st.booleans()
)
rows = st.builds(RowPrediction, intervals, numbers)
queries = st.builds(
    OfferQuery,
    cloud=st.sampled_from(Cloud),
    gpus=st.frozensets(texts, max_size=2),
    instance_types=st.frozensets(texts, max_size=2),
    regions=st.frozensets(texts, max_size=2),
    zones=st.frozensets(texts, max_size=2),
    markets=st.frozensets(st.sampled_from(Market)),
    max_price_usd_per_hour=maybe(numbers),
    min_memory_gib=maybe(numbers),
    min_gpu_memory_gib=maybe(numbers),
    min_gpu_count=maybe(numbers),
    efa_only=st.booleans(),
    with_gpu=maybe(st.booleans()),
    include_retired=st.booleans(),
)
jobs = st.builds(JobDocument, text=texts, name=names, model=maybe(names))
goals = st.builds(
    GoalOverride,
    deadline_s=maybe(positive),
    budget_usd=maybe(positive),
    confidence_fraction=maybe(inner_fractions),
    target_loss=maybe(positive),
)
questions = st.builds(
    PlanQuestion,
    goal=goals,
    objective=st.sampled_from(Objective),
    gap_fraction=inner_fractions,
    time_limit_s=positive,
    existing_fleet=maybe(names),
    switching_s=st.floats(0, allow_infinity=False),
    with_frontier=st.booleans(),
    with_rivals=st.booleans(),
    without_reasons=st.booleans(),
)
savings = st.builds(Saving, limit=texts, change=texts, saves_usd=numbers)
alternatives = st.builds(
    Alternative, label=texts, prediction=predictions, cost_usd=numbers, gives_up=texts
)
points = st.builds(
    FrontierPoint,
    deadline_s=numbers,
    prediction=predictions,
    cost_usd=numbers,
    lower_bound_usd=numbers,
)
pools = st.builds(Pool, texts, texts, st.sampled_from(Market))
pool_changes = st.builds(
    PoolChange,
    role=st.sampled_from(Role),
    pool=pools,
    running_count=counts,
    planned_count=counts,
)
rivals = st.builds(
    Rival,
    name=texts,
    cost_usd=numbers | st.just(float("inf")),
    duration_s=numbers | st.just(float("inf")),
    meets_goal=st.booleans(),
    note=texts,
)
changes = st.builds(
    SmallestChange, limit=texts, now=limits, needed=limits, proved=st.booleans(), text=texts
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cost_usd = draw(positive)
    return Plan(
        status=draw(st.sampled_from([PlanStatus.OPTIMAL, PlanStatus.FEASIBLE])),
        objective=draw(st.sampled_from(Objective)),
        prediction=draw(predictions),
        cost_usd=cost_usd,
        lower_bound_usd=draw(st.sampled_from([0.0, cost_usd])),
        lower_bound_s=draw(maybe(numbers)),
        deadline_probability=draw(maybe(numbers)),
        why=draw(few(texts)),
        savings=draw(few(savings)),
        alternatives=draw(few(alternatives)),
        frontier=draw(few(points)),
        changes=draw(few(pool_changes)),
        solve_s=draw(numbers),
        catalog_time=draw(times),
    )


planned = st.builds(
    PlannedFleet,
    plan=plans(),
    job_name=texts,
    target=st.builds(Target, kind=st.sampled_from(TargetKind), value=numbers),
    deadline_s=maybe(numbers),
    rivals=few(rivals),
    ended_early=st.booleans(),
    plan_id=texts,
    create_time=maybe(times),
)
summaries = st.builds(
    PlanSummary,
    plan_id=texts,
    create_time=times,
    job_name=texts,
    status=st.sampled_from([PlanStatus.OPTIMAL, PlanStatus.FEASIBLE]),
    cost_usd=numbers,
    duration_s=numbers,
)


@st.composite
def no_fleets(draw: st.DrawFn) -> NoFleet:
    error = NoFeasibleFleetError(
        clashes=draw(few(texts)),
        changes=draw(few(changes)),
        together=draw(few(changes)),
        proved=draw(st.booleans()),
    )
    return NoFleet(
        error=error,
        job_name=draw(texts),
        objective=draw(st.sampled_from(Objective)),
        catalog_time=draw(times),
    )
