"""Fleets in one line, written so that `--fleet` reads them."""

from spotwright.domain.fleet import Fleet, NodeGroup
from spotwright.domain.fleet_expression import FunctionTerm, NodeTerm, Term, format_terms
from spotwright.domain.rental import WantedFleet


def fleet_text(fleet: Fleet) -> str:
    """Return a fleet as an expression that names the zone and the market of every group."""
    terms: list[Term] = [_node_term(group) for group in fleet.nodes]
    if fleet.functions:
        functions = FunctionTerm(
            memory_mb=fleet.functions.memory_mb, function_count=fleet.functions.function_count
        )
        terms.insert(0, functions)
    return format_terms(tuple(terms))


def rented_text(fleet: WantedFleet) -> str:
    """Return the instances that a file of variables asks for, as an expression."""
    return format_terms(
        tuple(
            NodeTerm(
                role=pool.role,
                type_name=pool.instance_type,
                gpu_count=None,
                node_count=pool.node_count,
                zone=pool.zone,
                market=pool.market,
            )
            for pool in fleet.pools
        )
    )


def _node_term(group: NodeGroup) -> NodeTerm:
    offer = group.offer
    return NodeTerm(
        role=group.role,
        type_name=group.instance_type.name,
        gpu_count=_gpu_count(group),
        node_count=group.node_count,
        zone=offer.zone if offer else None,
        market=offer.market if offer else None,
    )


def _gpu_count(group: NodeGroup) -> int | None:
    """Return the GPUs used, where an expression without them would mean another number."""
    implied = group.instance_type.gpu_count if group.offer else 1  # a bare GPU is one
    return None if group.gpus_per_node == implied else int(group.gpus_per_node)
