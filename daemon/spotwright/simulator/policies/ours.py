"""Our controller, as the daemon runs it: watch_fleet, then steer, then decided."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView, Move, Steering
from spotwright.simulator.policies.policy import Wish
from spotwright.usecases.fleet_choices import FleetChoices, Question
from spotwright.usecases.steer_shrunk import steer
from spotwright.usecases.steering_memory import SteeringMemory, decided
from spotwright.usecases.steering_rules import SteeringRules
from spotwright.usecases.watch_fleet import is_too_early, postponed, watch_fleet

_HAIR_S = 1e-3  # so that what is due after a time is due, whatever rounding does
_POLL_S = 15.0  # between two looks while nodes are expected


@dataclass(slots=True, kw_only=True)
class Ours:
    """Steers by the rules that a daemon steers by."""

    choices: FleetChoices
    planned_s: float
    spot_pools: frozenset[Pool]
    start: Mapping[Pool, int] = field(default_factory=dict)  # the planned workers, if any
    rules: SteeringRules = field(default_factory=SteeringRules)
    memory: SteeringMemory = field(default_factory=SteeringMemory)
    _wanted: Mapping[Pool, int] = field(default_factory=dict)
    _ends: bool = False

    @property
    def watches(self) -> frozenset[Pool]:
        """None: what pools give is learnt from what they grant and take."""
        return frozenset()

    def decide(self, view: JobView) -> Wish:
        """Look at the job, and decide where something calls for it."""
        goal = self.choices.job.goal
        watched = watch_fleet(
            view, self.memory, goal=goal, rules=self.rules, spot_pools=self.spot_pools
        )
        if not watched.triggers:
            self.memory = watched.memory
        elif is_too_early(watched, self.rules):
            self.memory = postponed(watched, self.rules)
        else:
            steering = self._planned(view) or steer(
                watched.now,
                self.choices,
                goal=goal,
                planned_s=self.planned_s,
                rules=self.rules,
                forced=watched.forced,
            )
            self.memory = decided(watched.memory, steering, view)
            if steering.move is not Move.KEEP:
                self._wanted = steering.workers
            self._ends = steering.move is Move.GIVE_UP and not steering.workers
        saves = self.rules.save_on_notice
        return Wish(self._wanted, self._next_s(view), self._ends, saves)

    def _planned(self, view: JobView) -> Steering | None:
        """Return the plan as the first decision, where its pools give nodes."""
        if self.memory.time_s is not None or not self.start or {*self.start} & view.unavailable:
            return None
        choice = self.choices.of(self.start, view.servers, Question())
        if choice is None:
            return None
        return Steering(
            move=Move.CHANGE,
            workers=self.start,
            servers=view.servers,
            reason="as planned",
            holds_s=self.rules.look_around_s,
            goal_per_hour=3600 / choice.work_s,
            usd_per_hour=choice.usd_per_hour,
        )

    def _next_s(self, view: JobView) -> float:
        """Return when time alone could call for a decision."""
        memory, rules = self.memory, self.rules
        times = [memory.check_s, *memory.cooling.values()]
        times += [since_s + rules.grant_timeout_s for since_s in memory.short_since.values()]
        present = Counter(node.pool for node in view.nodes)
        if any(
            present[pool] < count and pool not in memory.short_since
            for pool, count in self._wanted.items()
        ):
            times.append(view.time_s + _POLL_S)  # to see what was granted
        if memory.drift_since_s is not None:
            times.append(memory.drift_since_s + rules.drift_after_s)
        budget_usd = self.choices.job.goal.budget_usd
        if budget_usd is not None and memory.usd_per_hour > 0:
            paid_s = (budget_usd - view.spent_usd) / memory.usd_per_hour * 3600
            times.append(view.time_s + paid_s - rules.farewell_s)
        later = [time_s + _HAIR_S for time_s in times if time_s + _HAIR_S > view.time_s]
        return min(later, default=math.inf)
