"""Find the offers that a fleet written by hand stands for.

What is left out of a term is filled in: one node, all its GPUs, on-demand, and the cheapest zone
the job allows; of zones that cost the same, the one that suits most terms, because traffic between
zones costs money. A job that wants its nodes close together gets the cheapest zone (or region)
where every term is offered. Offers that break a ceiling of the job can still be asked about: a
what-if is not a purchase.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spotwright.domain.errors import BadInputError, FleetExpressionError, UnknownNameError
from spotwright.domain.fleet import Fleet, FunctionGroup, NodeGroup, Role
from spotwright.domain.fleet_expression import FunctionTerm, NodeTerm, format_terms, parse
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.job import JobSpec, Placement
from spotwright.domain.offer import Market, Offer, OfferQuery
from spotwright.domain.workload import Strategy
from spotwright.usecases.ports import OfferSource

_MOST_NODES = 4_096
_LEAST_FUNCTION_MB, _MOST_FUNCTION_MB = 128, 10_240  # AWS Lambda


@dataclass(frozen=True, slots=True)
class _Choice:
    """One term and the offers that could serve it; no offer at all for a bare GPU."""

    term: NodeTerm
    bare: InstanceType | None
    offers: Sequence[Offer]


def resolve_fleet(text: str, job: JobSpec, source: OfferSource) -> Fleet:
    """Read a fleet expression and choose an offer for each term.

    Raises:
        FleetExpressionError: a typo, an unknown name, or more GPUs than the type has.
        BadInputError: the terms are nowhere offered together, or do not suit the strategy.
    """
    terms = parse(text)
    functions = [term for term in terms if isinstance(term, FunctionTerm)]
    nodes = [term for term in terms if isinstance(term, NodeTerm)]
    _check_roles(job.workload.strategy, functions, nodes)
    choices = [_choice(term, text, job, source) for term in nodes]
    choices += [_default_choice(term, job, source) for term in _servers(job, nodes)]
    scope = _common_scope(choices, job.limits.placement)
    cheapest = [_cheapest(choice, scope, job.limits.placement) for choice in choices]
    gathering = _gathering_zone(cheapest)
    return Fleet(
        nodes=tuple(
            _group(choice, _in_zone(offers, gathering))
            for choice, offers in zip(choices, cheapest, strict=True)
        ),
        functions=_functions(functions),
    )


def _check_roles(
    strategy: Strategy, functions: Sequence[FunctionTerm], nodes: Sequence[NodeTerm]
) -> None:
    node_count = sum(term.node_count for term in nodes)
    if node_count > _MOST_NODES:
        raise BadInputError(f"{node_count:,} nodes: fleets of up to {_MOST_NODES:,} are predicted")
    for term in functions:
        if not _LEAST_FUNCTION_MB <= term.memory_mb <= _MOST_FUNCTION_MB:
            raise BadInputError(
                f"a function has {_LEAST_FUNCTION_MB} to {_MOST_FUNCTION_MB:,} MB, "
                f"not {term.memory_mb:,}"
            )
    workers = [term for term in nodes if term.role is Role.WORKER]
    if strategy is Strategy.SERVERLESS and (not functions or workers):
        raise BadInputError("a serverless fleet is written as lambda:MB*COUNT [+ ps=TYPE]")
    if strategy is not Strategy.SERVERLESS and functions:
        raise BadInputError(f"lambda functions need strategy serverless, the job says {strategy}")
    if strategy is not Strategy.SERVERLESS and not workers:
        raise BadInputError("a fleet needs at least one worker")
    if strategy is Strategy.ALLREDUCE and len(workers) < len(nodes):
        raise BadInputError("strategy allreduce has no parameter servers: remove the ps= terms")


def _servers(job: JobSpec, nodes: Sequence[NodeTerm]) -> list[NodeTerm]:
    """Return the job's own parameter servers, unless the fleet names some."""
    serving = job.workload.parameter_serving
    if serving is None or any(term.role is Role.PS for term in nodes):
        return []
    return [
        NodeTerm(role=Role.PS, type_name=serving.default_type, node_count=serving.default_count)
    ]


def _choice(term: NodeTerm, text: str, job: JobSpec, source: OfferSource) -> _Choice:
    types, bare = _types(term, text, source)
    query = OfferQuery(
        cloud=job.limits.cloud,
        instance_types=frozenset(t.name for t in types),
        regions=job.limits.regions if term.zone is None else frozenset(),
        zones=frozenset({term.zone}) if term.zone else job.limits.zones,
        markets=frozenset({term.market or Market.ON_DEMAND}),
    )
    try:
        offers = source.offers(query) if types else ()
    except UnknownNameError as error:
        raise FleetExpressionError(str(error), text=text, column=term.column) from None
    if types and not offers:
        what = format_terms((term,))
        problem = f"{what} is not offered {_where(job)} as {term.market or Market.ON_DEMAND}"
        raise FleetExpressionError(problem, text=text, column=term.column)
    return _Choice(term, bare, offers)


def _default_choice(term: NodeTerm, job: JobSpec, source: OfferSource) -> _Choice:
    """Choose for a term the user did not write: there is no column to point at."""
    try:
        return _choice(term, term.type_name, job, source)
    except FleetExpressionError as error:
        way_out = "add ps=TYPE to the fleet, or set workload.parameter_server.type"
        problem = f"the job's parameter server cannot be used: {error.problem}; {way_out}"
        raise BadInputError(problem) from None


def _types(
    term: NodeTerm, text: str, source: OfferSource
) -> tuple[list[InstanceType], InstanceType | None]:
    """Return the types a name stands for; for a GPU nobody rents out, a bare host instead."""
    try:
        named = source.instance_type(term.type_name)
    except UnknownNameError as no_type:
        return _gpu_hosts(term, text, source, no_type)
    if (term.gpu_count or 0) > named.gpu_count:
        problem = f"{named.name} has {named.gpu_count:g} GPUs, not {term.gpu_count}"
        raise FleetExpressionError(problem, text=text, column=term.column)
    return [named], None


def _gpu_hosts(
    term: NodeTerm, text: str, source: OfferSource, no_type: UnknownNameError
) -> tuple[list[InstanceType], InstanceType | None]:
    try:
        gpu = source.gpu(term.type_name)
    except UnknownNameError as no_gpu:
        error = no_gpu if no_gpu.nearest and not no_type.nearest else no_type
        raise FleetExpressionError(str(error), text=text, column=term.column) from None
    wanted = term.gpu_count or 1
    hosts = [t for t in source.instance_types() if t.gpu_name == gpu.name and t.gpu_count >= wanted]
    if not hosts:
        return [], _bare_host(gpu, wanted)
    fewest = min(host.gpu_count for host in hosts)
    return [host for host in hosts if host.gpu_count == fewest], None


def _bare_host(gpu: Gpu, gpu_count: int) -> InstanceType:
    """Stand in for a machine the catalog does not have: enough vCPUs, no network figure."""
    return InstanceType(
        name=gpu.name,
        cloud=Cloud.AWS,
        vcpu_count=8.0 * gpu_count,
        memory_gib=32.0 * gpu_count,
        gpu_name=gpu.name,
        gpu_count=gpu_count,
        gpu_memory_gib=gpu.memory_gib,
    )


def _common_scope(choices: Sequence[_Choice], placement: Placement) -> str | None:
    """Return the cheapest zone or region in which every rented term is offered."""
    rented = [choice for choice in choices if choice.offers]
    if placement is Placement.ANYWHERE or not rented:
        return None
    per_choice = [_cheapest_by_scope(choice, placement) for choice in rented]
    common = set(per_choice[0]).intersection(*per_choice[1:])
    if not common:
        fleet = format_terms(tuple(choice.term for choice in rented))
        raise BadInputError(
            f"no single {placement.removeprefix('one-')} has all of {fleet}, and the job wants "
            f"them together; change the fleet, or set limits.placement (now {placement})"
        )
    return min(common, key=lambda scope: (sum(prices[scope] for prices in per_choice), scope))


def _cheapest_by_scope(choice: _Choice, placement: Placement) -> dict[str, float]:
    prices: dict[str, float] = {}
    for offer in choice.offers:  # cheapest first
        total = offer.price_usd_per_hour * choice.term.node_count
        prices.setdefault(_scope(offer, placement), total)
    return prices


def _scope(offer: Offer, placement: Placement) -> str:
    return offer.zone if placement is Placement.ONE_ZONE else offer.region


def _cheapest(choice: _Choice, scope: str | None, placement: Placement) -> list[Offer]:
    """Return the offers of a term that cost least, in the scope."""
    inside = [o for o in choice.offers if scope is None or _scope(o, placement) == scope]
    return [o for o in inside if o.price_usd_per_hour == inside[0].price_usd_per_hour]


def _gathering_zone(cheapest: Sequence[Sequence[Offer]]) -> str | None:
    """Return the zone in which most terms are at their cheapest."""
    terms_by_zone = Counter(zone for offers in cheapest for zone in {o.zone for o in offers})
    return min(terms_by_zone, key=lambda zone: (-terms_by_zone[zone], zone), default=None)


def _in_zone(offers: Sequence[Offer], zone: str | None) -> Offer | None:
    """Return the offer in a zone, else the first."""
    return next((o for o in offers if o.zone == zone), offers[0] if offers else None)


def _group(choice: _Choice, offer: Offer | None) -> NodeGroup:
    instance_type = offer.instance_type if offer else choice.bare
    assert instance_type is not None  # a term has offers or a bare host
    term = choice.term
    return NodeGroup(
        role=term.role,
        instance_type=instance_type,
        node_count=term.node_count,
        gpus_per_node=_gpus_used(term, instance_type),
        offer=offer,
    )


def _gpus_used(term: NodeTerm, instance_type: InstanceType) -> float:
    if term.gpu_count is not None:
        return term.gpu_count
    asked_by_gpu_name = term.type_name.lower() != instance_type.name.lower()
    return min(1.0, instance_type.gpu_count) if asked_by_gpu_name else instance_type.gpu_count


def _functions(terms: Iterable[FunctionTerm]) -> FunctionGroup | None:
    groups = [FunctionGroup(memory_mb=t.memory_mb, function_count=t.function_count) for t in terms]
    if len(groups) > 1:
        raise BadInputError("functions must all have the same memory: write one lambda term")
    return groups[0] if groups else None


def _where(job: JobSpec) -> str:
    places = sorted(job.limits.zones or job.limits.regions)
    return f"in {', '.join(places)}" if places else "anywhere in the catalog"
