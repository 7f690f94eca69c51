"""What is rented already: a plan keeps it where a change does not pay, and says what changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.fleet_expression import NodeTerm, parse
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.domain.plan import PoolChange, RunningFleet
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.resolve_fleet import resolve_fleet


def running_fleet(
    expression: str, job: JobSpec, source: OfferSource, *, switching_s: float
) -> RunningFleet:
    """Return the workers of a fleet expression by pool, and the servers if it names any.

    Servers that it leaves out are planned anew, not taken for the job's own.

    Raises:
        FleetExpressionError: a typo, an unknown name, or more GPUs than the type has.
        BadInputError: functions, or GPUs that nobody rents out.
    """
    fleet = resolve_fleet(expression, job, source)
    if fleet.functions is not None:
        raise BadInputError("functions are started anew in every run: none can be kept")
    roles = {term.role for term in parse(expression) if isinstance(term, NodeTerm)}
    return RunningFleet(
        nodes=_by_pool(fleet.workers),
        servers=_by_pool(fleet.servers if Role.PS in roles else ()),
        switching_s=switching_s,
    )


def fleet_changes(running: RunningFleet, planned: Fleet) -> tuple[PoolChange, ...]:
    """Return what becomes of every pool that runs or is planned; nothing where none runs."""
    if not running.nodes:
        return ()
    return (
        *_changes(Role.WORKER, running.nodes, _by_pool(planned.workers)),
        *_changes(Role.PS, running.servers, _by_pool(planned.servers)),
    )


def _changes(
    role: Role, running: Mapping[Pool, int], planned: Mapping[Pool, int]
) -> Iterator[PoolChange]:
    for pool in sorted({*running, *planned}):
        yield PoolChange(
            role=role,
            pool=pool,
            running_count=running.get(pool, 0),
            planned_count=planned.get(pool, 0),
        )


def _by_pool(groups: Iterable[NodeGroup]) -> dict[Pool, int]:
    counts: Counter[Pool] = Counter()
    for group in groups:
        if group.offer is None:
            raise BadInputError(f"{group.instance_type.name} is no instance type that is rented")
        counts[group.offer.pool] += group.node_count
    return dict(counts)
