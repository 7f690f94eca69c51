"""Fleets that differ in kind from the one chosen, and what each would give up."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec, Placement
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective
from spotwright.planner.confidence import solve_surely
from spotwright.planner.problem import Problem, Solution, Watch, at_most

_BOXES = 600  # of each search


@dataclass(frozen=True, slots=True)
class Variant:
    """A fleet of another kind."""

    label: str
    solution: Solution


def alternatives(
    problem: Problem,
    fleet: Fleet,
    *,
    problem_of: Callable[[JobSpec], Problem],
    objective: Objective,
    watch: Watch,
) -> list[Variant]:
    """Return the best fleet of each other kind that meets the goal, best first."""
    found: list[Variant] = []
    for label, variant in _variants(problem, fleet, problem_of):
        if watch.stopped():
            break
        if not variant.worker_offers and problem.worker_offers:
            continue
        solution = solve_surely(variant, objective=objective, watch=at_most(watch, _BOXES)).solution
        if solution.fleet is not None and _differs(label, solution.fleet, fleet):
            found.append(Variant(label, solution))
    found.sort(key=lambda variant: (variant.solution.value(objective), variant.label))
    return _distinct(found)


def _variants(
    problem: Problem, fleet: Fleet, problem_of: Callable[[JobSpec], Problem]
) -> Iterator[tuple[str, Problem]]:
    job, workers = problem.job, fleet.workers
    names = sorted({group.instance_type.name for group in workers})
    markets = {group.market for group in workers}
    zones = {group.offer.zone for group in workers if group.offer}
    if Market.SPOT in markets:
        yield "all on-demand", problem.on_demand()
    if markets == {Market.ON_DEMAND}:
        yield "all spot", _only(problem, lambda offer: offer.market is Market.SPOT)
    if len(names) > 1:
        for name in names:
            yield "single type", _only(problem, partial(_is_type, name))
    if len(zones) > 1 and job.limits.placement is not Placement.ONE_ZONE:
        limits = replace(job.limits, placement=Placement.ONE_ZONE)
        yield "single zone", problem_of(replace(job, limits=limits))
    nodes = sum(group.node_count for group in workers)
    if nodes > 1:
        servers = sum(group.node_count for group in fleet.servers)
        limits = replace(job.limits, max_nodes=max(1, nodes // 2) + servers)
        yield "fewer nodes", problem_of(replace(job, limits=limits))
    if workers:
        main = max(workers, key=lambda group: (group.node_count, group.instance_type.name))
        without = main.instance_type.name
        yield f"without {without}", _only(problem, lambda offer: not _is_type(without, offer))
    if fleet.functions is not None:
        functions = fleet.functions.function_count
        if functions > 1:
            limits = replace(job.limits, max_nodes=max(1, functions // 2))
            yield "fewer functions", problem_of(replace(job, limits=limits))


def _only(problem: Problem, wanted: Callable[[Offer], bool]) -> Problem:
    return replace(problem, worker_offers=[o for o in problem.worker_offers if wanted(o)])


def _is_type(name: str, offer: Offer) -> bool:
    return offer.instance_type.name == name


def _differs(label: str, other: Fleet, fleet: Fleet) -> bool:
    """Tell whether a fleet is another one, and of the kind it was asked to be."""
    if label == "fewer nodes":  # fewer servers may have made room for more workers
        most = sum(group.node_count for group in fleet.workers) // 2
        if sum(group.node_count for group in other.workers) > most:
            return False
    return not _same(other, fleet)


def _same(a: Fleet, b: Fleet) -> bool:
    return sorted(map(repr, a.nodes)) == sorted(map(repr, b.nodes)) and a.functions == b.functions


def _distinct(variants: Sequence[Variant]) -> list[Variant]:
    """Leave out fleets and labels that came up before."""
    kept: list[Variant] = []
    for variant in variants:
        fleet = variant.solution.fleet
        if fleet is None or any(variant.label == other.label for other in kept):
            continue
        if not any(other.solution.fleet and _same(fleet, other.solution.fleet) for other in kept):
            kept.append(variant)
    return kept
