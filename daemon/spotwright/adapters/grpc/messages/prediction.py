"""Predictions, to and from planner.proto."""

from spotwright.adapters.grpc.messages.enums import EnumPairs
from spotwright.adapters.grpc.messages.fleet import (
    fleet_from_proto,
    fleet_to_proto,
    group_from_proto,
    group_to_proto,
)
from spotwright.adapters.grpc.messages.scalars import by_name, optional
from spotwright.domain.prediction import (
    GroupPrediction,
    Interval,
    LinkRates,
    Prediction,
    StepTerms,
)
from spotwright.domain.questions import ComparedFleet, RowPrediction
from spotwright.domain.workload import Strategy
from spotwright.v1 import planner_pb2 as pb

STRATEGIES = EnumPairs(
    "strategy",
    {
        Strategy.ASP_PS: pb.STRATEGY_ASP_PS,
        Strategy.BSP_PS: pb.STRATEGY_BSP_PS,
        Strategy.ALLREDUCE: pb.STRATEGY_ALLREDUCE,
        Strategy.SERVERLESS: pb.STRATEGY_SERVERLESS,
    },
)


def interval_to_proto(interval: Interval) -> pb.Interval:
    """Return a figure with its interval as a message."""
    return pb.Interval(low=interval.low, mid=interval.mid, high=interval.high)


def interval_from_proto(message: pb.Interval) -> Interval:
    """Return a figure with its interval of a message."""
    return Interval(message.low, message.mid, message.high)


def terms_to_proto(terms: StepTerms) -> pb.StepTerms:
    """Return the parts of a step as a message."""
    return pb.StepTerms(
        compute_s=terms.compute_s,
        pcie_s=terms.pcie_s,
        nvlink_s=terms.nvlink_s,
        network_s=terms.network_s,
        ps_service_s=terms.ps_service_s,
        input_stall_s=terms.input_stall_s,
    )


def terms_from_proto(message: pb.StepTerms) -> StepTerms:
    """Return the parts of a step of a message."""
    return StepTerms(**by_name(message))


def rates_to_proto(rates: LinkRates) -> pb.LinkRates:
    """Return the rates of a node's links as a message."""
    return pb.LinkRates(
        network_mbps=rates.network_mbps, pcie_mbps=rates.pcie_mbps, nvlink_mbps=rates.nvlink_mbps
    )


def rates_from_proto(message: pb.LinkRates) -> LinkRates:
    """Return the rates of a node's links of a message."""
    return LinkRates(**by_name(message))


def group_prediction_to_proto(done: GroupPrediction) -> pb.GroupPrediction:
    """Return what equal workers do as a message."""
    return pb.GroupPrediction(
        group=group_to_proto(done.group) if done.group else None,
        batch_per_gpu=done.batch_per_gpu,
        step_s=done.step_s,
        terms=terms_to_proto(done.terms),
        samples_per_s=done.samples_per_s,
        memory_gib=done.memory_gib,
        memory_limit_gib=done.memory_limit_gib,
        compute_source=done.compute_source,
        rates=rates_to_proto(done.rates),
    )


def group_prediction_from_proto(message: pb.GroupPrediction) -> GroupPrediction:
    """Return what equal workers do of a message."""
    return GroupPrediction(
        group=group_from_proto(message.group) if message.HasField("group") else None,
        batch_per_gpu=message.batch_per_gpu,
        step_s=message.step_s,
        terms=terms_from_proto(message.terms),
        samples_per_s=message.samples_per_s,
        memory_gib=optional(message, "memory_gib"),
        memory_limit_gib=optional(message, "memory_limit_gib"),
        compute_source=message.compute_source,
        rates=rates_from_proto(message.rates),
    )


def prediction_to_proto(p: Prediction) -> pb.Prediction:
    """Return what a fleet does as a message."""
    return pb.Prediction(
        strategy=STRATEGIES.to_proto(p.strategy),
        fleet=fleet_to_proto(p.fleet),
        groups=[group_prediction_to_proto(group) for group in p.groups],
        iteration_s=interval_to_proto(p.iteration_s),
        cluster_steps_per_s=p.cluster_steps_per_s,
        samples_per_s=p.samples_per_s,
        weighted_batch=p.weighted_batch,
        convergence_coefficient=p.convergence_coefficient,
        steps_to_goal=p.steps_to_goal,
        duration_s=interval_to_proto(p.duration_s),
        duration_p95_s=p.duration_p95_s,
        deadline_probability=p.deadline_probability,
        overall_deadline_probability=p.overall_deadline_probability,
        uninterrupted_probability=p.uninterrupted_probability,
        cost_usd=interval_to_proto(p.cost_usd) if p.cost_usd else None,
        traffic_usd=p.traffic_usd,
        bottleneck=p.bottleneck,
        network_basis=p.network_basis,
        notes=p.notes,
    )


def prediction_from_proto(message: pb.Prediction) -> Prediction:
    """Return what a fleet does of a message."""
    return Prediction(
        strategy=STRATEGIES.from_proto(message.strategy),
        fleet=fleet_from_proto(message.fleet),
        groups=tuple(group_prediction_from_proto(group) for group in message.groups),
        iteration_s=interval_from_proto(message.iteration_s),
        cluster_steps_per_s=message.cluster_steps_per_s,
        samples_per_s=message.samples_per_s,
        weighted_batch=message.weighted_batch,
        convergence_coefficient=optional(message, "convergence_coefficient"),
        steps_to_goal=message.steps_to_goal,
        duration_s=interval_from_proto(message.duration_s),
        duration_p95_s=message.duration_p95_s,
        deadline_probability=optional(message, "deadline_probability"),
        overall_deadline_probability=optional(message, "overall_deadline_probability"),
        uninterrupted_probability=message.uninterrupted_probability,
        cost_usd=interval_from_proto(message.cost_usd) if message.HasField("cost_usd") else None,
        traffic_usd=message.traffic_usd,
        bottleneck=message.bottleneck,
        network_basis=message.network_basis,
        notes=tuple(message.notes),
    )


def compared_to_proto(compared: ComparedFleet) -> pb.ComparedFleet:
    """Return one of the fleets compared as a message."""
    return pb.ComparedFleet(
        prediction=prediction_to_proto(compared.prediction),
        broken=compared.broken,
        will_do=compared.will_do,
    )


def compared_from_proto(message: pb.ComparedFleet) -> ComparedFleet:
    """Return one of the fleets compared of a message."""
    return ComparedFleet(
        prediction=prediction_from_proto(message.prediction),
        broken=tuple(message.broken),
        will_do=message.will_do,
    )


def row_to_proto(row: RowPrediction) -> pb.ConfigurationPrediction:
    """Return one row of a table as a message."""
    return pb.ConfigurationPrediction(
        step_s=interval_to_proto(row.step_s), cluster_steps_per_s=row.cluster_steps_per_s
    )


def row_from_proto(message: pb.ConfigurationPrediction) -> RowPrediction:
    """Return one row of a table of a message."""
    return RowPrediction(interval_from_proto(message.step_s), message.cluster_steps_per_s)
