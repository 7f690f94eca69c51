"""Read what is rented already, so that a plan can keep it where a change does not pay."""

from collections import Counter

from spotwright.domain.errors import BadInputError
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.domain.plan import RunningFleet
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.resolve_fleet import resolve_fleet


def running_fleet(
    expression: str, job: JobSpec, source: OfferSource, *, switching_s: float
) -> RunningFleet:
    """Return the workers of a fleet expression, by pool.

    Raises:
        FleetExpressionError: a typo, an unknown name, or more GPUs than the type has.
        BadInputError: functions, or GPUs that nobody rents out.
    """
    fleet = resolve_fleet(expression, job, source)
    if fleet.functions is not None:
        raise BadInputError("functions are started anew in every run: none can be kept")
    nodes: Counter[Pool] = Counter()
    for group in fleet.workers:
        if group.offer is None:
            raise BadInputError(f"{group.instance_type.name} is no instance type that is rented")
        nodes[group.offer.pool] += group.node_count
    return RunningFleet(nodes=dict(nodes), switching_s=switching_s)
