"""Decide what a job does whose nodes have shrunk: with them as they are, or without some of them.

Decisions are made by the same rules and held against each other:

    with      the nodes stay; the whole fleet has the share of its speed that the model leaves it
    without   the worst of them, the two worst and so on are given up; their spot pools, which have
              just cut what they gave, give no more, and what comes in their place comes at once

What comes anew is paid while it starts. A fleet whose workers wait for each other stands still
meanwhile, of others only the share of the new ones is missing. What keeps deadline and budget is
preferred; if several do, nodes are given up where that saves enough of what is left to pay; if none
does, the earliest end counts, but the budget is kept.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spotwright.domain.job import Goal
from spotwright.domain.offer import Market
from spotwright.domain.shrunk import ShrunkNode
from spotwright.domain.steering import JobNow, Move, Steering
from spotwright.domain.units import format_duration, format_usd
from spotwright.domain.workload import Strategy
from spotwright.usecases.fleet_choices import FleetChoices, Question
from spotwright.usecases.steer_job import steer_job
from spotwright.usecases.steering_rules import SteeringRules

_MOST_LEFT = 4  # at once: each more is another search


def steer(
    now: JobNow,
    choices: FleetChoices,
    *,
    goal: Goal,
    planned_s: float,
    rules: SteeringRules,
    forced: bool,
) -> Steering:
    """Decide what a job does next, as `steer_job` does, with an eye on nodes that have shrunk."""
    share = choices.share_left(now.staying, now.servers, now.shrunk)
    included = share if now.shrunk_share is None else now.shrunk_share
    whole_pace = now.pace_factor / included

    def way(given_up: Sequence[ShrunkNode]) -> _Way:
        then = _without(now, given_up)
        share = choices.share_left(then.staying, then.servers, then.shrunk)
        found = steer_job(
            replace(then, pace_factor=whole_pace * share),
            choices,
            goal=goal,
            planned_s=planned_s,
            rules=replace(rules, pace=rules.pace and not given_up),
            forced=forced or bool(given_up),
        )
        found = replace(found, pace_factor=whole_pace * share, shrunk_share=share)
        return _way(found, then, choices, given_up)

    kept = way(())
    if not now.shrunk or kept.steering.gives_back:
        return kept.steering
    worst = sorted(
        now.shrunk, key=lambda node: choices.share_left(now.staying, now.servers, [node])
    )
    others = [way(worst[:count]) for count in range(1, min(len(worst), _MOST_LEFT) + 1)]
    return _Weighed(now=now, goal=goal, rules=rules, share=share).best(kept, others)


def _without(now: JobNow, given_up: Sequence[ShrunkNode]) -> JobNow:
    """Return how the job stands once some of its shrunk nodes are given up."""
    gone = Counter(node.pool for node in given_up)
    return replace(
        now,
        staying=dict(Counter(now.staying) - gone),
        down=now.down | {pool for pool in gone if pool.market is Market.SPOT},
        shrunk=tuple(node for node in now.shrunk if node not in given_up),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One decision, with the time and the money that entering its fleet takes."""

    steering: Steering
    given_up: Sequence[ShrunkNode]
    finish_s: float
    cost_usd: float


def _way(
    steering: Steering, now: JobNow, choices: FleetChoices, given_up: Sequence[ShrunkNode]
) -> _Way:
    finish_s, cost_usd = steering.finish_s, steering.cost_usd
    waits = given_up and steering.move is Move.WAIT  # rather with what there is
    if finish_s is None or cost_usd is None or waits:
        return _Way(steering=steering, given_up=given_up, finish_s=math.inf, cost_usd=math.inf)
    entering_s = _entering_s(steering, now, choices, given_up)
    return _Way(
        steering=steering,
        given_up=given_up,
        finish_s=finish_s + entering_s,
        cost_usd=cost_usd + entering_s / 3600 * steering.usd_per_hour,
    )


def _entering_s(
    steering: Steering, now: JobNow, choices: FleetChoices, given_up: Sequence[ShrunkNode]
) -> float:
    """Return the seconds of the new fleet's work that are lost until it is whole."""
    workload = choices.job.workload
    is_more = any(n > now.staying.get(pool, 0) for pool, n in steering.workers.items())
    if workload.strategy is not Strategy.ASP_PS:
        return workload.spot.restart_s if given_up or is_more else 0.0
    if not is_more:
        return 0.0
    have = choices.of(now.staying, now.servers, Question()) if now.staying else None
    going_on = 0.0 if have is None else 3600 / have.work_s / steering.goal_per_hour
    return workload.spot.restart_s * max(0.0, 1 - going_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """What ways are held against."""

    now: JobNow
    goal: Goal
    rules: SteeringRules
    share: float  # of its speed that the fleet has with all shrunk nodes

    def best(self, kept: _Way, others: Sequence[_Way]) -> Steering:
        """Return the best decision, with the reason for it."""
        can = [way for way in others if math.isfinite(way.finish_s) and self._is_paid(way)]
        if not can:
            return self._keeps(kept, "nothing that could take its place can be had and paid")
        good = [way for way in can if self._is_good(way)]
        if not good and not self._is_good(kept):
            return self._earlier(kept, min(can, key=lambda way: way.finish_s))
        if not good:
            return self._keeps(kept, f"without it {self._broken(can[0])}")
        if not self._is_good(kept):
            return self._leaves(self._cheapest(good), f"with it {self._broken(kept)}")
        return self._cheaper(kept, good)

    def _cheaper(self, kept: _Way, others: Sequence[_Way]) -> Steering:
        best = self._cheapest([kept, *others])
        if best is not kept:
            return self._leaves(best, f"a change saves {format_usd(kept.cost_usd - best.cost_usd)}")
        saved_usd = kept.cost_usd - min(way.cost_usd for way in others)
        if saved_usd > 0:
            return self._keeps(kept, f"a change would save {format_usd(saved_usd)} only")
        return self._keeps(kept, f"a change would cost {format_usd(-saved_usd)} more")

    def _cheapest(self, ways: Sequence[_Way]) -> _Way:
        """Return the cheapest, giving up no more nodes than save enough."""
        least = self.rules.least_saving_fraction if self.rules.savings_threshold else 0.0
        best = ways[0]
        for way in ways[1:]:
            if best.cost_usd - way.cost_usd > least * (best.cost_usd - self.now.spent_usd):
                best = way
        return best

    def _earlier(self, kept: _Way, left: _Way) -> Steering:
        earlier_s = kept.finish_s - left.finish_s
        if earlier_s > 0:
            return self._leaves(left, f"the job ends {format_duration(earlier_s)} earlier")
        return self._keeps(kept, "the job ends no earlier without it")

    def _is_good(self, way: _Way) -> bool:
        in_time = self.goal.deadline_s is None or way.finish_s <= self.goal.deadline_s
        return in_time and self._is_paid(way) and way.steering.move is not Move.GIVE_UP

    def _is_paid(self, way: _Way) -> bool:
        return self.goal.budget_usd is None or way.cost_usd <= self.goal.budget_usd

    def _broken(self, way: _Way) -> str:
        """Say what of the promise a way breaks."""
        deadline_s, budget_usd = self.goal.deadline_s, self.goal.budget_usd
        if deadline_s is not None and way.finish_s > deadline_s:
            return f"the job would be {format_duration(way.finish_s - deadline_s)} late"
        if budget_usd is not None and way.cost_usd > budget_usd:
            return f"the job would cost {format_usd(way.cost_usd - budget_usd)} over its budget"
        return way.steering.reason

    def _keeps(self, way: _Way, why: str) -> Steering:
        told = f"to keep {self._listed(self.now.shrunk)}: {why}; {way.steering.reason}"
        return replace(way.steering, reason=told, share_with_all=self.share)

    def _leaves(self, way: _Way, why: str) -> Steering:
        steering = way.steering
        return replace(
            steering,
            move=Move.CHANGE if steering.move is Move.KEEP else steering.move,
            reason=f"to replace {self._listed(way.given_up)}: {why}; {steering.reason}",
            leaves=tuple(node.node_id for node in way.given_up),
            share_with_all=self.share,
        )

    def _listed(self, nodes: Sequence[ShrunkNode]) -> str:
        named = " and ".join(f"{node.node_id} ({node.text})" for node in nodes)
        return f"{named}, the fleet having {self.share:.0%} of its speed"
