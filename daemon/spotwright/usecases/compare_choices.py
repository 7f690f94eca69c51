"""Hold fleets that a job has or could have against each other."""

from collections.abc import Mapping

from spotwright.domain.offer import Market, Pool
from spotwright.usecases.fleet_choices import Choice

_DEARER = 1.5  # than with every pool up: beyond that, another spot pool is no match for waiting


def is_match(spot: Choice, if_up: Choice) -> bool:
    """Tell whether a fleet has no more on-demand nodes than another, and is not much dearer."""
    more = _on_demand_count(spot) > _on_demand_count(if_up)
    return not more and spot.cost_usd <= if_up.cost_usd * _DEARER


def _on_demand_count(choice: Choice) -> int:
    return sum(n for pool, n in choice.workers.items() if pool.market is Market.ON_DEMAND)


def stands_in(workers: Mapping[Pool, int], spot: Choice | None) -> bool:
    """Tell whether on-demand nodes are there because spot nodes are not."""
    return spot is not None and any(
        count > spot.workers.get(pool, 0)
        for pool, count in workers.items()
        if pool.market is Market.ON_DEMAND
    )


def covers(have: Mapping[Pool, int], wanted: Mapping[Pool, int]) -> bool:
    """Tell whether nodes are at least those that are wanted."""
    return all(have.get(pool, 0) >= count for pool, count in wanted.items())


def is_on_demand(workers: Mapping[Pool, int]) -> bool:
    """Tell whether there are nodes, none of which can be taken away."""
    return bool(workers) and all(pool.market is Market.ON_DEMAND for pool in workers)
