"""The fleets that a running job could go on with.

    have    the workers that stay, as they are
    spot    the cheapest fleet with spot nodes: one that can be had now if it is a match for the one
            that there would be with every pool up, else that one
    bridge  the cheapest fleet that can be had now: on-demand nodes beside the survivors, say
    sure    the cheapest fleet without spot nodes as fast as `spot`, or else the fastest there is

Each is looked for with what is left of time, work and money, in terms of the whole goal.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spotwright.domain.offer import Market, Pool
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.domain.steering import JobNow
from spotwright.usecases.compare_choices import is_match
from spotwright.usecases.expect_losses import hazards_of, worst_overhead
from spotwright.usecases.fleet_choices import Choice, FleetChoices, Question
from spotwright.usecases.steering_rules import SteeringRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleets:
    """The fleets that are weighed; None where there is no such fleet."""

    have: Choice | None
    spot: Choice | None
    spot_is_there: bool
    bridge: Choice | None
    sure: Choice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is left of a job."""

    share: float  # of the goal
    pace: float  # measured speed over the predicted one
    budget_usd: float  # infinite: there is none
    restart_s: float  # that entering a fleet takes
    within_s: float | None  # until the deadline; None: there is none
    planned_s: float  # how long the first plan took the whole to be


class FleetsInReach:
    """Looks for the fleets of one decision."""

    def __init__(
        self, now: JobNow, choices: FleetChoices, rules: SteeringRules, rest: Rest
    ) -> None:
        self._now, self._choices, self._rules, self._rest = now, choices, rules, rest
        self._workload = choices.job.workload

    def fleets(self) -> Fleets:
        """Return all of them; a job without a deadline needs no sure one."""
        bridge = self._choices.best(self._question(self._open))
        spot = self._spot(self._open)
        spot_is_there = spot is not None
        if self._now.down:
            if_up = self._spot({})
            if spot is None or (if_up is not None and not is_match(spot, if_up)):
                spot, spot_is_there = if_up, False
        sure = None if self._rest.within_s is None else self._sure(spot or bridge)
        have = self._choices.of(self._now.staying, self._now.servers, self._question())
        return Fleets(have=have, spot=spot, spot_is_there=spot_is_there, bridge=bridge, sure=sure)

    @property
    def anyhow(self) -> Question:
        """What is asked of a fleet that can be had now where no deadline counts."""
        return replace(self._question(self._open), deadline_s=math.inf)

    @property
    def _open(self) -> dict[Pool, int]:
        """How many nodes pools that are down have at most: those that stay."""
        return {pool: self._now.staying.get(pool, 0) for pool in self._now.down}

    def _question(self, most: Mapping[Pool, int] | None = None, *, late: float = 1.0) -> Question:
        """Return what is asked of a fleet, in terms of the whole goal."""
        rules, now, rest = self._rules, self._now, self._rest
        switching_s = rest.restart_s / rest.share
        staying = now.staying if rules.keep_survivors else {}
        return Question(
            deadline_s=self._whole_s * late,
            budget_usd=rest.budget_usd / rest.share * rest.pace,
            most_by_pool=most or {},
            running=RunningFleet(
                nodes=dict(staying),
                servers=dict(now.servers),
                switching_s=min(switching_s, 1e7),
            ),
            hazards_per_hour=hazards_of(now.weather) if rules.learn else {},
            prices_usd_per_hour=now.prices_usd_per_hour,
        )

    @property
    def _whole_s(self) -> float:
        """How long the whole goal may take at the predicted pace, for the rest to be in time."""
        rest = self._rest
        if rest.within_s is None:
            return rest.planned_s * self._rules.patience_factor
        usable_s = max(rest.within_s - rest.restart_s, 1.0)
        return max(usable_s / rest.share * rest.pace, 1e-3)

    def _spot(self, most: Mapping[Pool, int]) -> Choice | None:
        """Return the best fleet with spot nodes; fast enough if nothing is interrupted.

        That interruptions would make it late is no reason against it: the sure fleet can follow.
        """
        first = self._choices.best(self._question(most))
        if first is not None and first.has_spot:
            return first
        question = self._question(most, late=1 + worst_overhead(self._workload, self._now.weather))
        found = self._choices.best(question)
        in_time_s = self._question(most).deadline_s
        if found is None or not found.has_spot or found.work_s > in_time_s * 1.001:
            return None
        return found

    def _sure(self, like: Choice | None) -> Choice | None:
        """Return a fleet that nobody takes away: as fast as another if that is cheap enough."""
        question = self._question()
        prices = question.prices_usd_per_hour
        question = replace(
            question,
            markets=frozenset({Market.ON_DEMAND}),
            hazards_per_hour={},
            prices_usd_per_hour={
                pool: usd for pool, usd in prices.items() if pool.market is Market.ON_DEMAND
            },
        )
        same_s = min(question.deadline_s, like.work_s * 1.001) if like else question.deadline_s
        found = self._choices.best(replace(question, deadline_s=same_s))
        found = found or self._choices.best(question)
        if found is None:
            free = replace(question, deadline_s=math.inf, objective=Objective.TIME)
            found = self._choices.best(free)
        return found
