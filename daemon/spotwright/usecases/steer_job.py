"""Decide what a running job does next: keep, change, wait, or say that the goal is out of reach.

The fleets that are held against each other are told in `fleets_in_reach`: have, spot, bridge, sure.

The safety net comes first: when only the sure fleet, entered now, still keeps the deadline, it is
entered. Else `planner.pacing` weighs waiting, spot and bridge by what is left of time and work and
by how spot capacity has come and gone. What works is changed only where that saves enough.

A job without a deadline has no net: it runs on spot nodes whenever they are there, waits for them
while it can still take as long as `patience_factor` says, then has what there is.

A budget is never exceeded. No fleet is entered that would, and once it is spent nothing is wanted
any more, no server either.
"""

import math
from dataclasses import replace

from spotwright.domain.job import Goal
from spotwright.domain.offer import Market
from spotwright.domain.plan import Objective
from spotwright.domain.steering import JobNow, Move, Steering
from spotwright.domain.units import format_duration, format_usd
from spotwright.planner.pacing import Market as SpotMarket
from spotwright.planner.pacing import Mode, Pace, Pacing, Standing
from spotwright.usecases.compare_choices import covers, is_on_demand, stands_in
from spotwright.usecases.expect_losses import change_rates, lost_work_s
from spotwright.usecases.fleet_choices import Choice, FleetChoices
from spotwright.usecases.fleets_in_reach import Fleets, FleetsInReach, Rest
from spotwright.usecases.steering_rules import SteeringRules

_AS_FAST = 1.02  # a fleet so little slower is as fast


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
        self._pace = max(now.pace_factor, rules.least_pace)
        self._workload = choices.job.workload
        self._restart_s = self._workload.spot.restart_s
        deadline_s = math.inf if goal.deadline_s is None else goal.deadline_s
        self._left_s = deadline_s - now.time_s
        self._deadline_s = deadline_s
        self._planned_s = planned_s
        self._budget_usd = math.inf if goal.budget_usd is None else goal.budget_usd - now.spent_usd
        rest = Rest(
            share=self._left,
            pace=self._pace,
            budget_usd=self._budget_usd,
            restart_s=self._restart_s,
            within_s=None if goal.deadline_s is None else self._left_s,
            planned_s=planned_s,
        )
        self._reach = FleetsInReach(now, choices, rules, rest)

    def made(self, *, forced: bool) -> Steering:
        """Weigh the fleets."""
        if self._now.is_spent or self._budget_usd <= 0:
            spent = self._told(
                Move.GIVE_UP, None, "the budget is spent: nothing is rented any more"
            )
            return replace(spent, servers={}, gives_back=True)
        fleets = self._reach.fleets()
        calm = fleets.have is not None and not forced and not self._is_at_risk(fleets.have)
        if calm and not self._needs_net(fleets):
            return self._calmly(fleets)
        return self._paced(fleets)

    # What is decided

    def _is_at_risk(self, have: Choice) -> bool:
        """Tell whether what runs would break the deadline or the budget."""
        needed_s = self._left * have.work_s / self._pace + self._now.ready_in_s
        return needed_s > self._left_s or not self._is_affordable(have)

    def _is_affordable(self, choice: Choice) -> bool:
        return self._rest_usd(choice) <= self._budget_usd

    def _rest_usd(self, choice: Choice) -> float:
        return self._left * choice.cost_usd / self._pace

    def _calmly(self, fleets: Fleets) -> Steering:
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

    def _paced(self, fleets: Fleets) -> Steering:
        """Choose between what can be had now and what may be had later."""
        found = self._weighed(fleets)
        return replace(found, stands_in=stands_in(found.workers, fleets.spot))

    def _weighed(self, fleets: Fleets) -> Steering:
        if self._goal.deadline_s is None:
            return self._unhurried(fleets)
        if fleets.sure is None:
            return self._without_net(fleets)
        if self._needs_net(fleets):
            return self._net(fleets, fleets.sure)
        if not self._rules.pace:
            return self._at_once(fleets, fleets.sure)
        stand_in = self._stand_in(fleets, fleets.sure)
        standing = self._standing(fleets, stand_in)
        pacing = self._pacing(fleets, stand_in, standing.mode)
        mode = self._allowed(pacing.best(standing), standing.mode, fleets, fleets.sure)
        if mode is Mode.SPOT and self._strands(fleets, fleets.sure):
            fleets = replace(fleets, spot=fleets.have)
        return self._entered(mode, fleets, stand_in, self._holds_s(mode, fleets, standing, pacing))

    def _allowed(self, best: Mode, mode: Mode, fleets: Fleets, sure: Choice) -> Mode:
        """Return the best mode, unless it takes time that the net needs."""
        if best is mode or not self._rules.safety_net:
            keeps = mode is Mode.SURE and best is not Mode.SURE and not self._rules.give_back
            return Mode.SURE if keeps or self._waits_in_vain(best, fleets, sure) else best
        stuck = self._net_hours(fleets, sure, is_left=True) <= self._entering_hours
        if mode is Mode.SURE and (stuck or not self._rules.give_back):
            return Mode.SURE
        if best is Mode.SPOT and stuck:  # lost once more, it would be too late
            return Mode.SURE
        return Mode.SURE if self._waits_in_vain(best, fleets, sure) else best

    def _strands(self, fleets: Fleets, sure: Choice) -> bool:
        """Tell whether entering another spot fleet takes time that the net needs."""
        spot = fleets.spot
        if spot is None or fleets.have is None or covers(self._now.staying, spot.workers):
            return False
        net_hours = self._net_hours(fleets, sure, is_left=True)
        return self._rules.safety_net and net_hours <= self._entering_hours

    def _waits_in_vain(self, best: Mode, fleets: Fleets, sure: Choice) -> bool:
        """Tell whether spot capacity would come back too late to be used."""
        if best is not Mode.WAIT or fleets.have is not None:
            return False
        return self._net_hours(fleets, sure) <= self._restart_s / 3600

    @property
    def _entering_hours(self) -> float:
        """How long spot nodes may take to come, or to be known not to."""
        unknown_s = 0.0 if self._now.is_probed else self._rules.grant_timeout_s
        return (self._restart_s + unknown_s) / 3600

    def _needs_net(self, fleets: Fleets) -> bool:
        """Tell whether only the sure fleet, entered now, keeps the deadline."""
        if fleets.sure is None or not self._rules.safety_net:
            return False
        return self._net_hours(fleets, fleets.sure) <= 0

    def _net_hours(self, fleets: Fleets, sure: Choice, *, is_left: bool = False) -> float:
        """Return for how long nothing need be done to keep the deadline, whatever happens.

        Args:
            fleets: that are weighed.
            sure: the net.
            is_left: for who is in the net and leaves it, and must be able to enter it once more.
        """
        in_sure = self._is_sure(sure)
        fleet = fleets.have if in_sure and fleets.have is not None else sure
        lost_s = lost_work_s(self._workload, self._now.weather, saves=self._rules.save_on_notice)
        stays = in_sure and not is_left
        entering_s = self._now.ready_in_s if stays else self._restart_s + lost_s
        needed_s = self._left * fleet.work_s / self._pace
        return (self._left_s - needed_s - entering_s - self._rules.margin_s) / 3600

    def _is_sure(self, sure: Choice) -> bool:
        """Tell whether the nodes that stay can do without any that may be taken away."""
        kept = {p: n for p, n in self._now.staying.items() if p.market is Market.ON_DEMAND}
        return bool(kept) and (is_on_demand(self._now.staying) or covers(kept, sure.workers))

    def _stand_in(self, fleets: Fleets, sure: Choice) -> Choice:
        """Return what is rented while spot capacity is away, or not worth its trouble."""
        if is_on_demand(self._now.staying) and fleets.have and not self._is_at_risk(fleets.have):
            return fleets.have
        bridge = fleets.bridge
        is_other = bridge is not None and not (
            fleets.spot_is_there and fleets.spot and bridge.workers == fleets.spot.workers
        )
        return bridge if bridge is not None and is_other else sure

    def _standing(self, fleets: Fleets, stand_in: Choice) -> Standing:
        """Return where the job stands, in hours of the fleet that stands in."""
        work_s = self._left * stand_in.work_s / self._pace
        return Standing(
            hours_left=self._left_s / 3600,
            work_hours=(work_s + self._now.ready_in_s) / 3600,
            mode=self._mode(fleets, stand_in),
            spot_is_there=fleets.spot_is_there,
        )

    def _mode(self, fleets: Fleets, stand_in: Choice) -> Mode:
        """Tell which fleet the nodes that stay are."""
        staying = self._now.staying
        if not staying:
            return Mode.WAIT
        if fleets.spot_is_there and fleets.spot and covers(staying, fleets.spot.workers):
            return Mode.SPOT
        if is_on_demand(staying) or covers(staying, stand_in.workers):
            return Mode.SURE
        fast = fleets.have is not None and fleets.have.work_s <= stand_in.work_s * _AS_FAST
        return Mode.SPOT if fast and fleets.spot_is_there else Mode.WAIT

    def _pacing(self, fleets: Fleets, stand_in: Choice, mode: Mode) -> Pacing:
        spot, unit_usd = fleets.spot or stand_in, stand_in.usd_per_hour
        wait = Pace(speed=0.0, price=0.0)
        if mode is Mode.WAIT and fleets.have is not None:  # survivors go on meanwhile
            wait = Pace(
                speed=stand_in.work_s / fleets.have.work_s,
                price=fleets.have.usd_per_hour / unit_usd,
            )
        losses, returns = change_rates(self._now.capacity)
        return Pacing(
            wait=wait,
            spot=Pace(speed=stand_in.work_s / spot.work_s, price=spot.usd_per_hour / unit_usd),
            market=SpotMarket(
                losses_per_hour=losses,
                returns_per_hour=returns,
                restart_hours=self._restart_s / 3600,
            ),
            longest_hours=self._deadline_s / 3600,
        )

    def _holds_s(self, mode: Mode, fleets: Fleets, standing: Standing, pacing: Pacing) -> float:
        """Return how long a decision holds if the market stays as it is."""
        hours = pacing.hours_until_change(replace(standing, mode=mode), mode)
        sure, spot = fleets.sure, fleets.spot
        keeps_pace = mode is Mode.SURE or (
            mode is standing.mode is Mode.SPOT
            and spot
            and sure
            and spot.duration_s <= sure.work_s * _AS_FAST  # what saving its state takes counted
        )
        if sure is not None and not keeps_pace:  # then the net draws nearer
            hours = min(hours, self._net_hours(fleets, sure))
        return max(hours * 3600, 1.0)

    def _entered(self, mode: Mode, fleets: Fleets, stand_in: Choice, holds_s: float) -> Steering:
        if mode is Mode.SPOT and fleets.spot is not None and fleets.spot_is_there:
            return self._moved(fleets.spot, "spot capacity is the cheapest", holds_s)
        if mode is Mode.SURE:
            reason = "on-demand nodes as far as the deadline needs them"
            return self._moved(stand_in, reason, holds_s)
        if fleets.spot is not None and covers(self._now.staying, fleets.spot.workers):
            return self._told(Move.KEEP, fleets.have, "all that is wanted is there", holds_s)
        return self._waits(fleets, "the deadline leaves time to wait for spot capacity", holds_s)

    def _waits(self, fleets: Fleets, reason: str, holds_s: float) -> Steering:
        """Go on with what is left until spot capacity is back.

        What is waited for is asked for: pools fill that as soon as they can.
        """
        told = self._told(Move.WAIT, fleets.spot or fleets.have, reason, holds_s)
        have, staying, workers = fleets.have, self._now.staying, told.workers
        survive = bool(staying) and not is_on_demand(staying)
        if survive and (fleets.spot_is_there or not covers(workers, staying)):
            workers = self._now.asked  # survivors train on, and those lost may come back
        elif fleets.spot_is_there:
            workers = dict(staying)
        return replace(
            told,
            workers=workers,
            goal_per_hour=3600 / have.work_s if have else 0.0,
            usd_per_hour=have.usd_per_hour if have else 0.0,
        )

    def _net(self, fleets: Fleets, sure: Choice) -> Steering:
        """Enter the sure fleet, or say that even it is late."""
        have = fleets.have
        in_sure = self._is_sure(sure)
        if in_sure and have is not None and not self._is_at_risk(have):
            return self._told(Move.KEEP, have, "no time is left for anything less sure")
        if self._lateness_s(sure) <= self._left_s * 0.001:
            return self._moved(sure, "the last moment for a fleet that nobody takes away", math.inf)
        spot = fleets.spot if fleets.spot_is_there else None
        known = [c for c in (have, spot, fleets.bridge) if c and self._is_affordable(c)]
        for choice in known:
            if self._lateness_s(choice) <= 0:
                reason = "no fleet that nobody takes away would be in time"
                return self._moved(choice, reason, math.inf)
        return self._given_up(min((*known, sure), key=lambda choice: choice.work_s))

    def _lateness_s(self, choice: Choice) -> float:
        """Return by how much a fleet misses the deadline though it is never interrupted."""
        enters_s = self._restart_s
        if choice.workers == dict(self._now.staying):
            enters_s = self._now.ready_in_s
        needed_s = self._left * choice.work_s / self._pace + enters_s
        return needed_s - self._left_s

    def _unhurried(self, fleets: Fleets) -> Steering:
        """Decide where no deadline presses."""
        best = fleets.spot if fleets.spot_is_there else fleets.bridge
        waits_s = self._patience_s
        runs = best is not None and covers(self._now.staying, best.workers)
        has_spot = fleets.spot_is_there or fleets.spot is None
        if self._rules.pace and not has_spot and not runs and waits_s > 0:
            return self._waits(fleets, "no deadline presses: wait for spot capacity", waits_s)
        return self._without_net(fleets)

    @property
    def _patience_s(self) -> float:
        """For how long a job without a deadline may wait before it goes on as planned."""
        rest_s = self._left * self._planned_s / self._pace + self._restart_s
        return self._planned_s * self._rules.patience_factor - self._now.time_s - rest_s

    def _at_once(self, fleets: Fleets, sure: Choice) -> Steering:
        best = fleets.spot if fleets.spot_is_there else fleets.bridge
        hours = self._net_hours(fleets, sure)
        holds_s = hours * 3600 if hours > 0 else math.inf  # its moment has passed
        return self._moved(best or sure, "what was lost is replaced at once", holds_s)

    def _without_net(self, fleets: Fleets) -> Steering:
        """Decide where no fleet without spot nodes can be had at all, or none is needed."""
        best = fleets.spot if fleets.spot_is_there else fleets.bridge
        if best is not None:
            return self._moved(best, "the cheapest that can be had", math.inf)
        if fleets.spot is not None:
            return self._told(Move.WAIT, fleets.spot, "nothing can be had: wait for spot", 600.0)
        anyhow = self._reach.anyhow
        if self._goal.deadline_s is not None:
            fastest = self._choices.best(replace(anyhow, objective=Objective.TIME))
            return self._given_up(fastest or fleets.have)
        slow = self._choices.best(anyhow)
        if slow is None:
            return self._given_up(fleets.have)
        return self._moved(slow, "the cheapest that can be had", math.inf)

    def _moved(self, to: Choice, reason: str, holds_s: float) -> Steering:
        if to.workers == dict(self._now.staying):
            return self._told(Move.KEEP, to, reason, holds_s)
        return self._told(Move.CHANGE, to, reason, holds_s)

    def _given_up(self, best: Choice | None) -> Steering:
        """Say which limit cannot be kept, with the best that can be had."""
        if best is None:
            cheapest = self._choices.best(replace(self._reach.anyhow, budget_usd=math.inf))
            text = "nothing that the limits allow can be had"
            text = text if cheapest is None else self._broken_limit(cheapest)
            return self._told(Move.GIVE_UP, None, text)
        return self._told(Move.GIVE_UP, best, self._broken_limit(best))

    def _broken_limit(self, best: Choice) -> str:
        over_usd, late_s = self._rest_usd(best) - self._budget_usd, self._lateness_s(best)
        if over_usd > 0:
            over = format_usd(over_usd)
            return f"the budget cannot be kept: the best fleet needs {over} more than is left of it"
        if late_s > 0:
            return f"the deadline cannot be kept: the best fleet is {format_duration(late_s)} late"
        return "the promise cannot be kept: this is the fastest fleet that the limits allow"

    def _told(
        self, move: Move, choice: Choice | None, reason: str, holds_s: float = math.inf
    ) -> Steering:
        now = self._now
        if choice is None:
            return Steering(
                move=move, workers={}, servers=now.servers, reason=reason, holds_s=holds_s
            )
        if move in (Move.KEEP, Move.CHANGE):  # other pools may have become cheaper by then
            holds_s = min(holds_s, self._rules.look_around_s)
        needed_s = self._left * choice.duration_s / self._pace
        return Steering(
            move=move,
            workers=choice.workers,
            servers=choice.servers,
            reason=f"{reason} ({format_usd(choice.usd_per_hour)}/h)",
            holds_s=holds_s,
            goal_per_hour=3600 / choice.work_s,
            usd_per_hour=choice.usd_per_hour,
            finish_s=now.time_s + needed_s,
            cost_usd=now.spent_usd + self._rest_usd(choice),
        )
