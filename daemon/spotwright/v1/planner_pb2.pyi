import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from spotwright.v1 import catalog_pb2 as _catalog_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Strategy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STRATEGY_UNSPECIFIED: _ClassVar[Strategy]
    STRATEGY_ASP_PS: _ClassVar[Strategy]
    STRATEGY_BSP_PS: _ClassVar[Strategy]
    STRATEGY_ALLREDUCE: _ClassVar[Strategy]
    STRATEGY_SERVERLESS: _ClassVar[Strategy]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_WORKER: _ClassVar[Role]
    ROLE_PS: _ClassVar[Role]

class PlanStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAN_STATUS_UNSPECIFIED: _ClassVar[PlanStatus]
    PLAN_STATUS_OPTIMAL: _ClassVar[PlanStatus]
    PLAN_STATUS_FEASIBLE: _ClassVar[PlanStatus]

class Objective(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBJECTIVE_UNSPECIFIED: _ClassVar[Objective]
    OBJECTIVE_COST: _ClassVar[Objective]
    OBJECTIVE_TIME: _ClassVar[Objective]
    OBJECTIVE_PARETO: _ClassVar[Objective]

class TargetKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TARGET_KIND_UNSPECIFIED: _ClassVar[TargetKind]
    TARGET_KIND_LOSS: _ClassVar[TargetKind]
    TARGET_KIND_SAMPLES: _ClassVar[TargetKind]
    TARGET_KIND_STEPS: _ClassVar[TargetKind]
    TARGET_KIND_EPOCHS: _ClassVar[TargetKind]
    TARGET_KIND_TOKENS: _ClassVar[TargetKind]
STRATEGY_UNSPECIFIED: Strategy
STRATEGY_ASP_PS: Strategy
STRATEGY_BSP_PS: Strategy
STRATEGY_ALLREDUCE: Strategy
STRATEGY_SERVERLESS: Strategy
ROLE_UNSPECIFIED: Role
ROLE_WORKER: Role
ROLE_PS: Role
PLAN_STATUS_UNSPECIFIED: PlanStatus
PLAN_STATUS_OPTIMAL: PlanStatus
PLAN_STATUS_FEASIBLE: PlanStatus
OBJECTIVE_UNSPECIFIED: Objective
OBJECTIVE_COST: Objective
OBJECTIVE_TIME: Objective
OBJECTIVE_PARETO: Objective
TARGET_KIND_UNSPECIFIED: TargetKind
TARGET_KIND_LOSS: TargetKind
TARGET_KIND_SAMPLES: TargetKind
TARGET_KIND_STEPS: TargetKind
TARGET_KIND_EPOCHS: TargetKind
TARGET_KIND_TOKENS: TargetKind

class JobDocument(_message.Message):
    __slots__ = ("text", "name", "model")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    text: str
    name: str
    model: str
    def __init__(self, text: _Optional[str] = ..., name: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class GoalOverride(_message.Message):
    __slots__ = ("deadline_s", "budget_usd", "confidence_fraction", "target_loss")
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FRACTION_FIELD_NUMBER: _ClassVar[int]
    TARGET_LOSS_FIELD_NUMBER: _ClassVar[int]
    deadline_s: float
    budget_usd: float
    confidence_fraction: float
    target_loss: float
    def __init__(self, deadline_s: _Optional[float] = ..., budget_usd: _Optional[float] = ..., confidence_fraction: _Optional[float] = ..., target_loss: _Optional[float] = ...) -> None: ...

class Target(_message.Message):
    __slots__ = ("kind", "value")
    KIND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    kind: TargetKind
    value: float
    def __init__(self, kind: _Optional[_Union[TargetKind, str]] = ..., value: _Optional[float] = ...) -> None: ...

class Interval(_message.Message):
    __slots__ = ("low", "mid", "high")
    LOW_FIELD_NUMBER: _ClassVar[int]
    MID_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    low: float
    mid: float
    high: float
    def __init__(self, low: _Optional[float] = ..., mid: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class NodeGroup(_message.Message):
    __slots__ = ("role", "instance_type", "node_count", "gpus_per_node", "offer")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    GPUS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    role: Role
    instance_type: _catalog_pb2.InstanceType
    node_count: int
    gpus_per_node: float
    offer: _catalog_pb2.Offer
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., instance_type: _Optional[_Union[_catalog_pb2.InstanceType, _Mapping]] = ..., node_count: _Optional[int] = ..., gpus_per_node: _Optional[float] = ..., offer: _Optional[_Union[_catalog_pb2.Offer, _Mapping]] = ...) -> None: ...

class FunctionGroup(_message.Message):
    __slots__ = ("memory_mb", "function_count")
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    memory_mb: int
    function_count: int
    def __init__(self, memory_mb: _Optional[int] = ..., function_count: _Optional[int] = ...) -> None: ...

class Fleet(_message.Message):
    __slots__ = ("nodes", "functions")
    NODES_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeGroup]
    functions: FunctionGroup
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeGroup, _Mapping]]] = ..., functions: _Optional[_Union[FunctionGroup, _Mapping]] = ...) -> None: ...

class StepTerms(_message.Message):
    __slots__ = ("compute_s", "pcie_s", "nvlink_s", "network_s", "ps_service_s", "input_stall_s")
    COMPUTE_S_FIELD_NUMBER: _ClassVar[int]
    PCIE_S_FIELD_NUMBER: _ClassVar[int]
    NVLINK_S_FIELD_NUMBER: _ClassVar[int]
    NETWORK_S_FIELD_NUMBER: _ClassVar[int]
    PS_SERVICE_S_FIELD_NUMBER: _ClassVar[int]
    INPUT_STALL_S_FIELD_NUMBER: _ClassVar[int]
    compute_s: float
    pcie_s: float
    nvlink_s: float
    network_s: float
    ps_service_s: float
    input_stall_s: float
    def __init__(self, compute_s: _Optional[float] = ..., pcie_s: _Optional[float] = ..., nvlink_s: _Optional[float] = ..., network_s: _Optional[float] = ..., ps_service_s: _Optional[float] = ..., input_stall_s: _Optional[float] = ...) -> None: ...

class GroupPrediction(_message.Message):
    __slots__ = ("group", "batch_per_gpu", "step_s", "terms", "samples_per_s", "memory_gib", "memory_limit_gib", "compute_source", "rates")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_GPU_FIELD_NUMBER: _ClassVar[int]
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_S_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_GIB_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    group: NodeGroup
    batch_per_gpu: float
    step_s: float
    terms: StepTerms
    samples_per_s: float
    memory_gib: float
    memory_limit_gib: float
    compute_source: str
    rates: LinkRates
    def __init__(self, group: _Optional[_Union[NodeGroup, _Mapping]] = ..., batch_per_gpu: _Optional[float] = ..., step_s: _Optional[float] = ..., terms: _Optional[_Union[StepTerms, _Mapping]] = ..., samples_per_s: _Optional[float] = ..., memory_gib: _Optional[float] = ..., memory_limit_gib: _Optional[float] = ..., compute_source: _Optional[str] = ..., rates: _Optional[_Union[LinkRates, _Mapping]] = ...) -> None: ...

class LinkRates(_message.Message):
    __slots__ = ("network_mbps", "pcie_mbps", "nvlink_mbps")
    NETWORK_MBPS_FIELD_NUMBER: _ClassVar[int]
    PCIE_MBPS_FIELD_NUMBER: _ClassVar[int]
    NVLINK_MBPS_FIELD_NUMBER: _ClassVar[int]
    network_mbps: float
    pcie_mbps: float
    nvlink_mbps: float
    def __init__(self, network_mbps: _Optional[float] = ..., pcie_mbps: _Optional[float] = ..., nvlink_mbps: _Optional[float] = ...) -> None: ...

class Prediction(_message.Message):
    __slots__ = ("strategy", "fleet", "groups", "iteration_s", "cluster_steps_per_s", "samples_per_s", "weighted_batch", "convergence_coefficient", "steps_to_goal", "duration_s", "duration_p95_s", "deadline_probability", "overall_deadline_probability", "uninterrupted_probability", "cost_usd", "traffic_usd", "bottleneck", "network_basis", "notes")
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    FLEET_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ITERATION_S_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_STEPS_PER_S_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_S_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_BATCH_FIELD_NUMBER: _ClassVar[int]
    CONVERGENCE_COEFFICIENT_FIELD_NUMBER: _ClassVar[int]
    STEPS_TO_GOAL_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    DURATION_P95_S_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    OVERALL_DEADLINE_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    UNINTERRUPTED_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_USD_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_FIELD_NUMBER: _ClassVar[int]
    NETWORK_BASIS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    strategy: Strategy
    fleet: Fleet
    groups: _containers.RepeatedCompositeFieldContainer[GroupPrediction]
    iteration_s: Interval
    cluster_steps_per_s: float
    samples_per_s: float
    weighted_batch: float
    convergence_coefficient: float
    steps_to_goal: float
    duration_s: Interval
    duration_p95_s: float
    deadline_probability: float
    overall_deadline_probability: float
    uninterrupted_probability: float
    cost_usd: Interval
    traffic_usd: float
    bottleneck: str
    network_basis: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, strategy: _Optional[_Union[Strategy, str]] = ..., fleet: _Optional[_Union[Fleet, _Mapping]] = ..., groups: _Optional[_Iterable[_Union[GroupPrediction, _Mapping]]] = ..., iteration_s: _Optional[_Union[Interval, _Mapping]] = ..., cluster_steps_per_s: _Optional[float] = ..., samples_per_s: _Optional[float] = ..., weighted_batch: _Optional[float] = ..., convergence_coefficient: _Optional[float] = ..., steps_to_goal: _Optional[float] = ..., duration_s: _Optional[_Union[Interval, _Mapping]] = ..., duration_p95_s: _Optional[float] = ..., deadline_probability: _Optional[float] = ..., overall_deadline_probability: _Optional[float] = ..., uninterrupted_probability: _Optional[float] = ..., cost_usd: _Optional[_Union[Interval, _Mapping]] = ..., traffic_usd: _Optional[float] = ..., bottleneck: _Optional[str] = ..., network_basis: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class Alternative(_message.Message):
    __slots__ = ("label", "prediction", "cost_usd", "gives_up")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    GIVES_UP_FIELD_NUMBER: _ClassVar[int]
    label: str
    prediction: Prediction
    cost_usd: float
    gives_up: str
    def __init__(self, label: _Optional[str] = ..., prediction: _Optional[_Union[Prediction, _Mapping]] = ..., cost_usd: _Optional[float] = ..., gives_up: _Optional[str] = ...) -> None: ...

class Saving(_message.Message):
    __slots__ = ("limit", "change", "saves_usd")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    SAVES_USD_FIELD_NUMBER: _ClassVar[int]
    limit: str
    change: str
    saves_usd: float
    def __init__(self, limit: _Optional[str] = ..., change: _Optional[str] = ..., saves_usd: _Optional[float] = ...) -> None: ...

class FrontierPoint(_message.Message):
    __slots__ = ("deadline_s", "prediction", "cost_usd", "lower_bound_usd")
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_USD_FIELD_NUMBER: _ClassVar[int]
    deadline_s: float
    prediction: Prediction
    cost_usd: float
    lower_bound_usd: float
    def __init__(self, deadline_s: _Optional[float] = ..., prediction: _Optional[_Union[Prediction, _Mapping]] = ..., cost_usd: _Optional[float] = ..., lower_bound_usd: _Optional[float] = ...) -> None: ...

class PoolChange(_message.Message):
    __slots__ = ("role", "instance_type", "zone", "market", "running_count", "planned_count")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    MARKET_FIELD_NUMBER: _ClassVar[int]
    RUNNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    PLANNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    role: Role
    instance_type: str
    zone: str
    market: _catalog_pb2.Market
    running_count: int
    planned_count: int
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., instance_type: _Optional[str] = ..., zone: _Optional[str] = ..., market: _Optional[_Union[_catalog_pb2.Market, str]] = ..., running_count: _Optional[int] = ..., planned_count: _Optional[int] = ...) -> None: ...

class SmallestChange(_message.Message):
    __slots__ = ("limit", "now", "needed", "proved", "text")
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    PROVED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    limit: str
    now: float
    needed: float
    proved: bool
    text: str
    def __init__(self, limit: _Optional[str] = ..., now: _Optional[float] = ..., needed: _Optional[float] = ..., proved: _Optional[bool] = ..., text: _Optional[str] = ...) -> None: ...

class Rival(_message.Message):
    __slots__ = ("name", "cost_usd", "duration_s", "meets_goal", "note")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    MEETS_GOAL_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    cost_usd: float
    duration_s: float
    meets_goal: bool
    note: str
    def __init__(self, name: _Optional[str] = ..., cost_usd: _Optional[float] = ..., duration_s: _Optional[float] = ..., meets_goal: _Optional[bool] = ..., note: _Optional[str] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("plan_id", "create_time", "job_name", "status", "objective", "prediction", "cost_usd", "lower_bound_usd", "lower_bound_s", "deadline_probability", "why", "savings", "alternatives", "frontier", "changes", "solve_s", "catalog_time", "rivals", "ended_early", "target", "deadline_s")
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_USD_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_S_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SAVINGS_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    FRONTIER_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    SOLVE_S_FIELD_NUMBER: _ClassVar[int]
    CATALOG_TIME_FIELD_NUMBER: _ClassVar[int]
    RIVALS_FIELD_NUMBER: _ClassVar[int]
    ENDED_EARLY_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    plan_id: str
    create_time: _timestamp_pb2.Timestamp
    job_name: str
    status: PlanStatus
    objective: Objective
    prediction: Prediction
    cost_usd: float
    lower_bound_usd: float
    lower_bound_s: float
    deadline_probability: float
    why: _containers.RepeatedScalarFieldContainer[str]
    savings: _containers.RepeatedCompositeFieldContainer[Saving]
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    frontier: _containers.RepeatedCompositeFieldContainer[FrontierPoint]
    changes: _containers.RepeatedCompositeFieldContainer[PoolChange]
    solve_s: float
    catalog_time: _timestamp_pb2.Timestamp
    rivals: _containers.RepeatedCompositeFieldContainer[Rival]
    ended_early: bool
    target: Target
    deadline_s: float
    def __init__(self, plan_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., job_name: _Optional[str] = ..., status: _Optional[_Union[PlanStatus, str]] = ..., objective: _Optional[_Union[Objective, str]] = ..., prediction: _Optional[_Union[Prediction, _Mapping]] = ..., cost_usd: _Optional[float] = ..., lower_bound_usd: _Optional[float] = ..., lower_bound_s: _Optional[float] = ..., deadline_probability: _Optional[float] = ..., why: _Optional[_Iterable[str]] = ..., savings: _Optional[_Iterable[_Union[Saving, _Mapping]]] = ..., alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ..., frontier: _Optional[_Iterable[_Union[FrontierPoint, _Mapping]]] = ..., changes: _Optional[_Iterable[_Union[PoolChange, _Mapping]]] = ..., solve_s: _Optional[float] = ..., catalog_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rivals: _Optional[_Iterable[_Union[Rival, _Mapping]]] = ..., ended_early: _Optional[bool] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., deadline_s: _Optional[float] = ...) -> None: ...

class Infeasible(_message.Message):
    __slots__ = ("job_name", "objective", "proved", "limits", "changes", "together", "catalog_time")
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    PROVED_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    CATALOG_TIME_FIELD_NUMBER: _ClassVar[int]
    job_name: str
    objective: Objective
    proved: bool
    limits: _containers.RepeatedScalarFieldContainer[str]
    changes: _containers.RepeatedCompositeFieldContainer[SmallestChange]
    together: _containers.RepeatedCompositeFieldContainer[SmallestChange]
    catalog_time: _timestamp_pb2.Timestamp
    def __init__(self, job_name: _Optional[str] = ..., objective: _Optional[_Union[Objective, str]] = ..., proved: _Optional[bool] = ..., limits: _Optional[_Iterable[str]] = ..., changes: _Optional[_Iterable[_Union[SmallestChange, _Mapping]]] = ..., together: _Optional[_Iterable[_Union[SmallestChange, _Mapping]]] = ..., catalog_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ("job", "fleet")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLEET_FIELD_NUMBER: _ClassVar[int]
    job: JobDocument
    fleet: str
    def __init__(self, job: _Optional[_Union[JobDocument, _Mapping]] = ..., fleet: _Optional[str] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("prediction", "catalog_time")
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    CATALOG_TIME_FIELD_NUMBER: _ClassVar[int]
    prediction: Prediction
    catalog_time: _timestamp_pb2.Timestamp
    def __init__(self, prediction: _Optional[_Union[Prediction, _Mapping]] = ..., catalog_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PredictConfigurationsRequest(_message.Message):
    __slots__ = ("job", "csv", "csv_name")
    JOB_FIELD_NUMBER: _ClassVar[int]
    CSV_FIELD_NUMBER: _ClassVar[int]
    CSV_NAME_FIELD_NUMBER: _ClassVar[int]
    job: JobDocument
    csv: str
    csv_name: str
    def __init__(self, job: _Optional[_Union[JobDocument, _Mapping]] = ..., csv: _Optional[str] = ..., csv_name: _Optional[str] = ...) -> None: ...

class PredictConfigurationsResponse(_message.Message):
    __slots__ = ("predictions", "warnings")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    predictions: _containers.RepeatedCompositeFieldContainer[ConfigurationPrediction]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, predictions: _Optional[_Iterable[_Union[ConfigurationPrediction, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class ConfigurationPrediction(_message.Message):
    __slots__ = ("step_s", "cluster_steps_per_s")
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_STEPS_PER_S_FIELD_NUMBER: _ClassVar[int]
    step_s: Interval
    cluster_steps_per_s: float
    def __init__(self, step_s: _Optional[_Union[Interval, _Mapping]] = ..., cluster_steps_per_s: _Optional[float] = ...) -> None: ...

class CompareFleetsRequest(_message.Message):
    __slots__ = ("job", "fleets")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLEETS_FIELD_NUMBER: _ClassVar[int]
    job: JobDocument
    fleets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job: _Optional[_Union[JobDocument, _Mapping]] = ..., fleets: _Optional[_Iterable[str]] = ...) -> None: ...

class CompareFleetsResponse(_message.Message):
    __slots__ = ("fleets", "catalog_time")
    FLEETS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_TIME_FIELD_NUMBER: _ClassVar[int]
    fleets: _containers.RepeatedCompositeFieldContainer[ComparedFleet]
    catalog_time: _timestamp_pb2.Timestamp
    def __init__(self, fleets: _Optional[_Iterable[_Union[ComparedFleet, _Mapping]]] = ..., catalog_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ComparedFleet(_message.Message):
    __slots__ = ("prediction", "broken", "will_do")
    PREDICTION_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    WILL_DO_FIELD_NUMBER: _ClassVar[int]
    prediction: Prediction
    broken: _containers.RepeatedScalarFieldContainer[str]
    will_do: bool
    def __init__(self, prediction: _Optional[_Union[Prediction, _Mapping]] = ..., broken: _Optional[_Iterable[str]] = ..., will_do: _Optional[bool] = ...) -> None: ...

class CreatePlanRequest(_message.Message):
    __slots__ = ("request_id", "job", "goal", "objective", "gap_fraction", "time_limit_s", "existing_fleet", "switching_s", "with_frontier", "with_rivals", "without_reasons")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    GAP_FRACTION_FIELD_NUMBER: _ClassVar[int]
    TIME_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FLEET_FIELD_NUMBER: _ClassVar[int]
    SWITCHING_S_FIELD_NUMBER: _ClassVar[int]
    WITH_FRONTIER_FIELD_NUMBER: _ClassVar[int]
    WITH_RIVALS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_REASONS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    job: JobDocument
    goal: GoalOverride
    objective: Objective
    gap_fraction: float
    time_limit_s: float
    existing_fleet: str
    switching_s: float
    with_frontier: bool
    with_rivals: bool
    without_reasons: bool
    def __init__(self, request_id: _Optional[str] = ..., job: _Optional[_Union[JobDocument, _Mapping]] = ..., goal: _Optional[_Union[GoalOverride, _Mapping]] = ..., objective: _Optional[_Union[Objective, str]] = ..., gap_fraction: _Optional[float] = ..., time_limit_s: _Optional[float] = ..., existing_fleet: _Optional[str] = ..., switching_s: _Optional[float] = ..., with_frontier: _Optional[bool] = ..., with_rivals: _Optional[bool] = ..., without_reasons: _Optional[bool] = ...) -> None: ...

class CreatePlanResponse(_message.Message):
    __slots__ = ("plan", "infeasible")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    INFEASIBLE_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    infeasible: Infeasible
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ..., infeasible: _Optional[_Union[Infeasible, _Mapping]] = ...) -> None: ...

class GetPlanRequest(_message.Message):
    __slots__ = ("plan_id",)
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    plan_id: str
    def __init__(self, plan_id: _Optional[str] = ...) -> None: ...

class GetPlanResponse(_message.Message):
    __slots__ = ("plan", "job")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    job: JobDocument
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ..., job: _Optional[_Union[JobDocument, _Mapping]] = ...) -> None: ...

class ListPlansRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "job_name")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    job_name: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., job_name: _Optional[str] = ...) -> None: ...

class PlanSummary(_message.Message):
    __slots__ = ("plan_id", "create_time", "job_name", "status", "cost_usd", "duration_s")
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    JOB_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    plan_id: str
    create_time: _timestamp_pb2.Timestamp
    job_name: str
    status: PlanStatus
    cost_usd: float
    duration_s: float
    def __init__(self, plan_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., job_name: _Optional[str] = ..., status: _Optional[_Union[PlanStatus, str]] = ..., cost_usd: _Optional[float] = ..., duration_s: _Optional[float] = ...) -> None: ...

class ListPlansResponse(_message.Message):
    __slots__ = ("plans", "next_page_token")
    PLANS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    plans: _containers.RepeatedCompositeFieldContainer[PlanSummary]
    next_page_token: str
    def __init__(self, plans: _Optional[_Iterable[_Union[PlanSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RenderTfvarsRequest(_message.Message):
    __slots__ = ("plan_id",)
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    plan_id: str
    def __init__(self, plan_id: _Optional[str] = ...) -> None: ...

class RenderTfvarsResponse(_message.Message):
    __slots__ = ("tfvars_json",)
    TFVARS_JSON_FIELD_NUMBER: _ClassVar[int]
    tfvars_json: str
    def __init__(self, tfvars_json: _Optional[str] = ...) -> None: ...
