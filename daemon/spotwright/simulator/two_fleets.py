"""The spot fleet and the sure fleet of a job, for policies that know no others."""

import math
from collections.abc import Mapping
from dataclasses import replace

from spotwright.domain.errors import BadInputError
from spotwright.domain.offer import Market, Pool
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.simulator.policies.one_fleet import TwoFleets
from spotwright.usecases.fleet_choices import Choice, FleetChoices, Question

PATIENCE_FACTOR = 2.0  # times the planned duration, where a job has no deadline


def two_fleets(
    choices: FleetChoices, *, planned: Mapping[Pool, int], servers: Mapping[Pool, int]
) -> TwoFleets:
    """Return the planned workers beside the cheapest on-demand fleet that is in time.

    Where no on-demand fleet is, the fastest one stands in. A job without a deadline is given twice
    the time that its plan takes.

    Raises:
        BadInputError: nothing can be had on demand at all.
    """
    job = choices.job
    restart_s = job.workload.spot.restart_s
    deadline_s = job.goal.deadline_s or _patience_s(choices, planned, servers)
    sure = sure_fleet(choices, servers=servers, within_s=max(deadline_s - 2 * restart_s, 1.0))
    return TwoFleets(
        spot=dict(planned),
        sure=sure.workers,
        sure_s=sure.work_s,
        deadline_s=deadline_s,
        restart_s=restart_s,
    )


def sure_fleet(choices: FleetChoices, *, servers: Mapping[Pool, int], within_s: float) -> Choice:
    """Return the cheapest fleet without spot nodes that is in time, else the fastest."""
    question = Question(
        deadline_s=within_s,
        markets=frozenset({Market.ON_DEMAND}),
        running=RunningFleet(servers=dict(servers)),
    )
    found = choices.best(question) or choices.best(
        replace(question, deadline_s=math.inf, objective=Objective.TIME)
    )
    if found is None:
        raise BadInputError(
            "the job allows no on-demand fleet, without which no deadline is sure; "
            "allow the on-demand market in limits.markets"
        )
    return found


def _patience_s(
    choices: FleetChoices, planned: Mapping[Pool, int], servers: Mapping[Pool, int]
) -> float:
    choice = choices.of(planned, servers, Question())
    return PATIENCE_FACTOR * choice.duration_s if choice else 86400.0
