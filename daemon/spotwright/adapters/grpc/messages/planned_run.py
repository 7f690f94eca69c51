"""What a plan promises, from the document that it is kept as."""

from collections.abc import Sequence

from spotwright.adapters.grpc.messages.prediction import rates_from_proto, terms_from_proto
from spotwright.domain.fleet import Role
from spotwright.domain.job import Target, TargetKind
from spotwright.domain.ledger import RentedPool
from spotwright.domain.offer import Market
from spotwright.domain.planned_run import PlannedNodes, PlannedPool, PlannedRun
from spotwright.domain.prediction import StepTerms
from spotwright.domain.workload import Strategy
from spotwright.v1 import catalog_pb2, planner_pb2

_TARGET_KINDS = {
    planner_pb2.TARGET_KIND_LOSS: TargetKind.LOSS,
    planner_pb2.TARGET_KIND_SAMPLES: TargetKind.SAMPLES,
    planner_pb2.TARGET_KIND_STEPS: TargetKind.STEPS,
    planner_pb2.TARGET_KIND_EPOCHS: TargetKind.EPOCHS,
    planner_pb2.TARGET_KIND_TOKENS: TargetKind.TOKENS,
}
_STRATEGIES = {
    planner_pb2.STRATEGY_ASP_PS: Strategy.ASP_PS,
    planner_pb2.STRATEGY_BSP_PS: Strategy.BSP_PS,
    planner_pb2.STRATEGY_ALLREDUCE: Strategy.ALLREDUCE,
    planner_pb2.STRATEGY_SERVERLESS: Strategy.SERVERLESS,
}
_ROLES = {planner_pb2.ROLE_WORKER: Role.WORKER, planner_pb2.ROLE_PS: Role.PS}
_MARKETS = {
    catalog_pb2.MARKET_SPOT: Market.SPOT,
    catalog_pb2.MARKET_ON_DEMAND: Market.ON_DEMAND,
}


def read_planned_run(document: bytes) -> PlannedRun:
    """Return what a plan promises, from the document that it is kept as."""
    plan = planner_pb2.Plan.FromString(document)
    prediction = plan.prediction
    kind = _TARGET_KINDS.get(plan.target.kind)
    return PlannedRun(
        target=None if kind is None else Target(kind=kind, value=plan.target.value),
        steps_to_goal=prediction.steps_to_goal,
        samples_to_goal=prediction.steps_to_goal * prediction.weighted_batch,
        duration_s=prediction.duration_s.mid,
        cost_usd=plan.cost_usd,
        rent_usd_per_hour=_rent_usd_per_hour(prediction.fleet),
        samples_per_s=prediction.samples_per_s,
        step_s=_mean_step_s(prediction),
        deadline_s=plan.deadline_s if plan.HasField("deadline_s") else None,
        strategy=_STRATEGIES.get(prediction.strategy),
        pools=_pools(prediction),
        nodes=tuple(
            _planned_nodes(group) for group in prediction.fleet.nodes if group.HasField("offer")
        ),
    )


def _planned_nodes(group: planner_pb2.NodeGroup) -> PlannedNodes:
    offer = group.offer
    name = group.instance_type.name or offer.instance_type
    return PlannedNodes(
        role=str(_ROLES.get(group.role, "")),
        pool=RentedPool(name, offer.zone, str(_MARKETS.get(offer.market, ""))),
        node_count=group.node_count,
        price_usd_per_hour=offer.price_usd_per_hour,
    )


def _pools(prediction: planner_pb2.Prediction) -> tuple[PlannedPool, ...]:
    """Return the workers by instance type, whatever zone and market they are in."""
    by_type: dict[str, list[planner_pb2.GroupPrediction]] = {}
    for group in prediction.groups:
        if group.HasField("group"):
            name = group.group.instance_type.name or group.group.offer.instance_type
            by_type.setdefault(name, []).append(group)
    return tuple(_pool(name, groups) for name, groups in by_type.items())


def _pool(name: str, groups: Sequence[planner_pb2.GroupPrediction]) -> PlannedPool:
    """Return equal nodes as one; those of zones that differ in their terms count by number."""
    node_count = sum(group.group.node_count for group in groups)
    shares = [group.group.node_count / max(1, node_count) for group in groups]
    terms = [terms_from_proto(group.terms).by_name() for group in groups]
    mean = {
        f"{term}_s": sum(share * own[term] for share, own in zip(shares, terms, strict=True))
        for term in terms[0]
    }
    return PlannedPool(
        instance_type=name,
        node_count=node_count,
        step_s=sum(share * g.step_s for share, g in zip(shares, groups, strict=True)),
        terms=StepTerms(**mean),
        rates=rates_from_proto(groups[0].rates),
    )


def _rent_usd_per_hour(fleet: planner_pb2.Fleet) -> float | None:
    if fleet.HasField("functions") or not all(node.HasField("offer") for node in fleet.nodes):
        return None
    return sum(node.node_count * node.offer.price_usd_per_hour for node in fleet.nodes)


def _mean_step_s(prediction: planner_pb2.Prediction) -> float | None:
    """Return the mean over steps: a fast worker makes more of them than a slow one."""
    workers = [(_worker_count(group), group.step_s) for group in prediction.groups]
    steps_per_s = sum(count / step_s for count, step_s in workers if step_s > 0)
    return sum(count for count, _ in workers) / steps_per_s if steps_per_s else None


def _worker_count(group: planner_pb2.GroupPrediction) -> float:
    nodes = group.group
    return nodes.node_count * max(1.0, nodes.gpus_per_node) if group.HasField("group") else 1.0
