"""Decide what a running job does next: keep, change, wait, or say that the goal is out of reach.

Fleets that are held against each other:

    have    the workers that stay, as they are
    spot    the cheapest fleet, from pools that give nodes now; if none has spot nodes, the one that
            there would be if the pools that are down were up
    bridge  the cheapest fleet that can be had now
    sure    the cheapest fleet without spot nodes as fast as `spot`, or else the fastest there is

The safety net comes first: when only the sure fleet, entered now, still keeps the deadline, it is
entered. Else `planner.pacing` weighs waiting, spot and bridge by what is left of time and work and
by how spot capacity has come and gone. What works is changed only where that saves enough.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spotwright.domain.job import Goal
from spotwright.domain.offer import Market, Pool
from spotwright.domain.plan import Objective, RunningFleet
from spotwright.domain.steering import JobNow, Move, Steering
from spotwright.domain.units import format_duration, format_usd
from spotwright.perfmodel.interruption import checkpoint_s
from spotwright.planner.pacing import Market as SpotMarket
from spotwright.planner.pacing import Mode, Pace, Pacing, Standing
from spotwright.usecases.fleet_choices import Choice, FleetChoices, Question
from spotwright.usecases.steering_rules import SteeringRules

# Until losses and returns have been seen, spot capacity is taken to be lost every three hours and
# to be gone for one: between the two V100 series of the October 2022 availability campaign.
_PRIOR_EVENTS, _PRIOR_UP_HOURS, _PRIOR_DOWN_HOURS = 2.0, 6.0, 2.0
_AS_GOOD = 1.02  # a fleet so little dearer is as good


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fleets:
    """The fleets that are weighed."""

    have: Choice | None
    spot: Choice | None
    spot_is_there: bool
    bridge: Choice | None
    sure: Choice | None


def steer_job(
    now: JobNow,
    choices: FleetChoices,
    *,
    goal: Goal,
    planned_s: float,
    rules: SteeringRules,
    forced: bool,
) -> Steering:
    """Decide what a job does next.

    Args:
        now: how it stands.
        choices: the fleets that it could have.
        goal: of the whole job, its deadline counted from when training began.
        planned_s: how long the first plan took it to be.
        rules: to decide by.
        forced: something happened that cannot be left as it is; else only a good saving counts.
    """
    return _Decision(now, choices, goal, planned_s, rules).made(forced=forced)


class _Decision:
    """One decision being made."""

    def __init__(
        self,
        now: JobNow,
        choices: FleetChoices,
        goal: Goal,
        planned_s: float,
        rules: SteeringRules,
    ) -> None:
        self._now, self._choices, self._goal, self._rules = now, choices, goal, rules
        self._left = max(1 - now.done_fraction, 1e-9)
        self._restart_s = choices.job.workload.spot.restart_s
        deadline_s = goal.deadline_s or max(planned_s * rules.patience_factor, now.time_s + 3600)
        self._left_s = deadline_s - now.time_s
        self._deadline_s = deadline_s
        self._budget_usd = math.inf if goal.budget_usd is None else goal.budget_usd - now.spent_usd

    def made(self, *, forced: bool) -> Steering:
        """Weigh the fleets."""
        if self._budget_usd <= 0:
            return self._told(Move.GIVE_UP, None, "the budget is spent: nothing more is rented")
        fleets = self._fleets()
        if fleets.have is not None and not forced and not self._is_at_risk(fleets.have):
            return self._calmly(fleets)
        return self._paced(fleets)

    # What could be had

    def _fleets(self) -> _Fleets:
        closed = dict.fromkeys(self._now.down, 0)
        open_ = {pool: self._now.staying.get(pool, 0) for pool in closed}
        bridge = self._cheapest(open_)
        spot = self._spot(open_)
        spot_is_there = spot is not None
        if spot is None and self._now.down:
            spot = self._spot({})
        sure = self._sure(spot or bridge)
        have = self._choices.of(self._now.staying, self._now.servers, self._question())
        return _Fleets(have=have, spot=spot, spot_is_there=spot_is_there, bridge=bridge, sure=sure)

    def _question(self, most: Mapping[Pool, int] | None = None, *, late: float = 1.0) -> Question:
        """Return what is asked of a fleet, in terms of the whole goal."""
        rules, now = self._rules, self._now
        usable_s = max(self._left_s - self._restart_s, 1.0)
        switching_s = self._restart_s / self._left
        staying = now.staying if rules.keep_survivors else {}
        return Question(
            deadline_s=max(usable_s / self._left * now.pace_factor * late, 1e-3),
            budget_usd=self._budget_usd / self._left,
            most_by_pool=most or {},
            running=RunningFleet(
                nodes=dict(staying),
                servers=dict(now.servers),
                switching_s=min(switching_s, 1e7),
            ),
            hazards_per_hour=self._hazards() if rules.learn else {},
            prices_usd_per_hour=now.prices_usd_per_hour,
        )

    def _cheapest(self, most: Mapping[Pool, int]) -> Choice | None:
        return self._choices.best(self._question(most))

    def _spot(self, most: Mapping[Pool, int]) -> Choice | None:
        """Return the best fleet with spot nodes; fast enough if nothing is interrupted.

        That interruptions would make it late is no reason against it: the sure fleet can follow.
        """
        first = self._choices.best(self._question(most))
        if first is not None and first.has_spot:
            return first
        question = self._question(most, late=1 + self._worst_overhead())
        found = self._choices.best(question)
        in_time_s = self._question(most).deadline_s
        if found is None or not found.has_spot or found.work_s > in_time_s * 1.001:
            return None
        return found

    def _sure(self, like: Choice | None) -> Choice | None:
        """Return a fleet that nobody takes away: as fast as another if that is cheap enough."""
        question = replace(self._question(), markets=frozenset({Market.ON_DEMAND}))
        same_s = min(question.deadline_s, like.work_s * 1.001) if like else question.deadline_s
        found = self._choices.best(replace(question, deadline_s=same_s))
        found = found or self._choices.best(question)
        if found is None:
            free = replace(question, deadline_s=math.inf, objective=Objective.TIME)
            found = self._choices.best(free)
        return found

    def _hazards(self) -> dict[Pool, float]:
        """Return the losses per hour of pools that lost nodes while they were watched."""
        return {
            pool: _rounded(
                (_PRIOR_EVENTS / 2 + seen.losses) / (_PRIOR_UP_HOURS / 2 + seen.up_hours)
            )
            for pool, seen in self._now.weather.items()
            if seen.losses
        }

    def _worst_overhead(self) -> float:
        """Return by how much interruptions may stretch a run in the worst of the pools."""
        save_s = checkpoint_s(self._choices.job.workload)
        worst = max(self._hazards().values(), default=1 / 3)
        saving = math.sqrt(2 * save_s * worst / 3600)
        return 2 * (worst * (self._restart_s + save_s) / 3600 + saving)

    # What is decided

    def _is_at_risk(self, have: Choice) -> bool:
        needed_s = self._left * have.work_s / self._now.pace_factor + self._now.ready_in_s
        return needed_s > self._left_s

    def _calmly(self, fleets: _Fleets) -> Steering:
        """Change what works only if that saves enough."""
        have, best = fleets.have, fleets.spot if fleets.spot_is_there else fleets.bridge
        assert have is not None
        if best is None or best.workers == have.workers:
            return self._told(Move.KEEP, have, "nothing that can be had is better")
        least = self._rules.least_saving_fraction if self._rules.savings_threshold else 0.0
        saving = 1 - best.cost_usd / have.cost_usd
        if saving <= least:
            return self._told(Move.KEEP, have, f"a change would save {max(saving, 0):.1%} only")
        return self._paced(fleets)

    def _paced(self, fleets: _Fleets) -> Steering:
        """Choose between what can be had now and what may be had later."""
        sure = fleets.sure
        if sure is None:
            return self._without_net(fleets)
        standing, pacing = self._standing(fleets, sure), self._pacing(fleets, sure)
        margin_hours = self._rules.margin_s / 3600
        in_sure = standing.mode is Mode.SURE
        if self._rules.safety_net and pacing.must_be_sure(standing, margin_hours=margin_hours):
            return self._net(fleets, sure, standing)
        if not self._rules.pace:
            return self._at_once(fleets, sure)
        mode = pacing.best(standing)
        stuck = not pacing.may_leave_sure(standing, margin_hours=margin_hours)
        if in_sure and mode is not Mode.SURE and (stuck or not self._rules.give_back):
            mode = Mode.SURE
        return self._entered(mode, fleets, sure, self._holds_s(mode, standing, pacing))

    def _standing(self, fleets: _Fleets, sure: Choice) -> Standing:
        """Return where the job stands, in hours of the sure fleet."""
        work_hours = self._left * sure.work_s / 3600 / self._now.pace_factor
        waiting_hours = self._now.ready_in_s / 3600
        return Standing(
            hours_left=self._left_s / 3600,
            work_hours=work_hours + waiting_hours,
            mode=self._mode(fleets, sure),
            spot_is_there=fleets.spot_is_there,
        )

    def _mode(self, fleets: _Fleets, sure: Choice) -> Mode:
        """Tell which fleet the nodes that stay are."""
        have = self._now.staying
        if (have and _covers(have, sure.workers)) or _is_on_demand(have):
            return Mode.SURE
        if fleets.spot and _covers(have, fleets.spot.workers):
            return Mode.SPOT
        enough = fleets.have is not None and fleets.have.work_s <= sure.work_s * _AS_GOOD
        return Mode.SPOT if enough and fleets.spot_is_there else Mode.WAIT

    def _pacing(self, fleets: _Fleets, sure: Choice) -> Pacing:
        have, spot = fleets.have, fleets.spot or sure
        unit_usd = sure.usd_per_hour
        waits = have is not None and not _is_on_demand(self._now.staying)
        wait = Pace(
            speed=sure.work_s / have.work_s if waits and have else 0.0,
            price=have.usd_per_hour / unit_usd if waits and have else 0.0,
        )
        seen = self._now.capacity
        losses = (_PRIOR_EVENTS + seen.losses) / (_PRIOR_UP_HOURS + seen.up_hours)
        returns = (_PRIOR_EVENTS + seen.returns) / (_PRIOR_DOWN_HOURS + seen.down_hours)
        return Pacing(
            wait=wait,
            spot=Pace(speed=sure.work_s / spot.work_s, price=spot.usd_per_hour / unit_usd),
            market=SpotMarket(
                losses_per_hour=_rounded(losses),
                returns_per_hour=_rounded(returns),
                restart_hours=self._restart_s / 3600,
            ),
            longest_hours=self._deadline_s / 3600,
        )

    def _holds_s(self, mode: Mode, standing: Standing, pacing: Pacing) -> float:
        """Return how long a decision holds if the market stays as it is."""
        after = replace(standing, mode=mode)
        hours = pacing.hours_until_change(after, mode)
        entering = 0.0 if mode is Mode.SURE else self._restart_s / 3600
        if mode is Mode.WAIT:  # the net draws nearer while nothing is done
            net_hours = standing.hours_left - standing.work_hours - entering
            hours = min(hours, net_hours - self._rules.margin_s / 3600)
        return max(hours * 3600, 1.0)

    def _entered(self, mode: Mode, fleets: _Fleets, sure: Choice, holds_s: float) -> Steering:
        if mode is Mode.SPOT and fleets.spot is not None and fleets.spot_is_there:
            return self._moved(fleets.spot, "spot capacity is the cheapest", holds_s)
        if mode is Mode.SURE:
            return self._bridged(fleets, sure, holds_s)
        if fleets.spot is not None and _covers(self._now.staying, fleets.spot.workers):
            return self._told(Move.KEEP, fleets.have, "all that is wanted is there", holds_s)
        wanted = fleets.spot or fleets.have
        told = self._told(Move.WAIT, wanted, "the deadline leaves time to wait for spot", holds_s)
        have = fleets.have
        return replace(
            told,
            goal_per_hour=3600 / have.work_s if have else 0.0,
            usd_per_hour=have.usd_per_hour if have else 0.0,
        )

    def _bridged(self, fleets: _Fleets, sure: Choice, holds_s: float) -> Steering:
        bridge = fleets.bridge or sure
        if _is_on_demand(self._now.staying) and fleets.have is not None:
            in_time = not self._is_at_risk(fleets.have)
            bridge = fleets.have if in_time else bridge
        return self._moved(bridge, "on-demand nodes as far as the deadline needs them", holds_s)

    def _net(self, fleets: _Fleets, sure: Choice, standing: Standing) -> Steering:
        have = fleets.have
        if standing.mode is Mode.SURE and have is not None and not self._is_at_risk(have):
            return self._told(Move.KEEP, have, "no time is left for anything less sure")
        needed_s = self._left * sure.work_s / self._now.pace_factor
        entering_s = 0.0 if standing.mode is Mode.SURE else self._restart_s
        if needed_s + entering_s > self._left_s * 1.001 and self._goal.deadline_s is not None:
            best = self._fastest(fleets, sure)
            return self._given_up(best)
        return self._moved(sure, "the last moment for a fleet that nobody takes away", math.inf)

    def _at_once(self, fleets: _Fleets, sure: Choice) -> Steering:
        best = fleets.spot if fleets.spot_is_there else fleets.bridge
        return self._moved(best or sure, "what was lost is replaced at once", math.inf)

    def _without_net(self, fleets: _Fleets) -> Steering:
        """Decide where no fleet without spot nodes can be had at all."""
        best = fleets.spot if fleets.spot_is_there else fleets.bridge
        if best is not None:
            return self._moved(best, "the cheapest that can be had", math.inf)
        if fleets.spot is not None:
            return self._told(Move.WAIT, fleets.spot, "nothing can be had: wait for spot", 600.0)
        return self._given_up(fleets.have)

    def _fastest(self, fleets: _Fleets, sure: Choice) -> Choice:
        known = [c for c in (fleets.have, fleets.bridge, sure) if c is not None]
        return min(known, key=lambda choice: choice.work_s)

    def _moved(self, to: Choice, reason: str, holds_s: float) -> Steering:
        if to.workers == dict(self._now.staying):
            return self._told(Move.KEEP, to, reason, holds_s)
        return self._told(Move.CHANGE, to, reason, holds_s)

    def _given_up(self, best: Choice | None) -> Steering:
        if best is None:
            return self._told(Move.GIVE_UP, None, "nothing that the limits allow can be had")
        late_s = self._left * best.work_s / self._now.pace_factor - self._left_s
        text = f"the deadline cannot be kept: the best fleet is {format_duration(late_s)} late"
        return self._told(Move.GIVE_UP, best, text)

    def _told(
        self, move: Move, choice: Choice | None, reason: str, holds_s: float = math.inf
    ) -> Steering:
        now = self._now
        if choice is None:
            return Steering(
                move=move, workers={}, servers=now.servers, reason=reason, holds_s=holds_s
            )
        needed_s = self._left * choice.duration_s / now.pace_factor
        cost_usd = now.spent_usd + self._left * choice.cost_usd / now.pace_factor
        return Steering(
            move=move,
            workers=choice.workers,
            servers=choice.servers,
            reason=f"{reason} ({format_usd(choice.usd_per_hour)}/h)",
            holds_s=holds_s,
            goal_per_hour=3600 / choice.work_s * now.pace_factor,
            usd_per_hour=choice.usd_per_hour,
            finish_s=now.time_s + needed_s,
            cost_usd=cost_usd,
        )


def _covers(have: Mapping[Pool, int], wanted: Mapping[Pool, int]) -> bool:
    return all(have.get(pool, 0) >= count for pool, count in wanted.items())


def _is_on_demand(workers: Mapping[Pool, int]) -> bool:
    return bool(workers) and all(pool.market is Market.ON_DEMAND for pool in workers)


def _rounded(rate: float) -> float:
    """Round a rate to a factor of 1.4: it is known no better, and answers can be used again."""
    return float(2 ** (round(math.log2(rate) * 2) / 2))
