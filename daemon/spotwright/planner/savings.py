"""What binds a plan, and what it would save if that were looser.

A figure of which most is used is loosened by a quarter and the job is planned again, from the fleet
that was chosen. What the new plan costs less is the saving; a figure that saves something binds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spotwright.domain.fleet import Fleet
from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.offer import Market
from spotwright.domain.plan import Saving
from spotwright.domain.quota import QUOTA_CODES
from spotwright.planner.confidence import solve_surely
from spotwright.planner.knobs import Knob, knobs
from spotwright.planner.problem import Problem, Watch, at_most

_LOOSER = 0.25
_WORTH_TELLING = 0.002  # of the cost
_BOXES = 600  # of each search


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a limit a fleet uses."""

    knob: Knob
    used: float

    @property
    def may_bind(self) -> bool:
        """Whether a quarter more might be used: of a goal always, since nodes are whole."""
        goal = self.knob.limit.startswith("goal.")
        return goal or self.knob.falls or self.used * (1 + _LOOSER) > self.knob.now

    @property
    def is_spent(self) -> bool:
        """Whether next to nothing of it is left."""
        return not self.knob.falls and self.used >= 0.98 * self.knob.now

    @property
    def text(self) -> str:
        """Say it."""
        if self.knob.falls:
            return f"{self.knob.limit} binds: it asks for {self.knob.text(self.knob.now)}"
        used, most = self.knob.shown(self.used), self.knob.shown(self.knob.now)
        return f"{self.knob.limit} binds: {used} of {most} is used"


def uses(job: JobSpec, fleet: Fleet, *, cost_usd: float, duration_s: float) -> list[Use]:
    """Return what a fleet uses of each figure that the job limits."""
    return [Use(knob, used_of(job, knob, fleet, cost_usd, duration_s)) for knob in knobs(job)]


def savings(
    problem_of: Callable[[JobSpec], Problem],
    candidates: Sequence[Use],
    *,
    fleet: Fleet,
    cost_usd: float,
    watch: Watch,
) -> list[Saving]:
    """Return what loosening each figure saves, most first; one that saves something binds."""
    found = []
    for use in candidates:
        if watch.stopped():
            break
        value = _loosened(use.knob)
        looser = solve_surely(
            problem_of(use.knob.turned(value)),
            watch=at_most(watch, _BOXES),
            start=(fleet,),
        ).solution
        saved = cost_usd - looser.cost_usd
        if saved > _WORTH_TELLING * cost_usd:
            found.append(
                Saving(limit=use.knob.limit, change=_change(use.knob, value), saves_usd=saved)
            )
    return sorted(found, key=lambda saving: (-saving.saves_usd, saving.limit))


def _loosened(knob: Knob) -> float:
    if knob.falls:
        return knob.now * (1 - _LOOSER)
    value = knob.now * (1 + _LOOSER)
    return math.ceil(value) if knob.whole else value


def _change(knob: Knob, value: float) -> str:
    if knob.falls:
        return f"{knob.text(value)} instead of {knob.text(knob.now)}"
    return f"{knob.text(value - knob.now)} more"


def used_of(
    job: JobSpec, knob: Knob, fleet: Fleet, cost_usd: float = 0.0, duration_s: float = 0.0
) -> float:
    """Return how much of a figure a fleet uses."""
    name, _, key = knob.limit.removeprefix("limits.").partition(".")
    workers = fleet.workers
    match name:
        case "goal":
            used = duration_s if key == "deadline" else cost_usd
        case "max_count":
            used = sum(g.node_count for g in workers if g.instance_type.name == key)
        case "max_vcpus":
            used = _vcpus_used(job.limits, fleet, key)
        case "max_usd_per_hour":
            used = sum(g.usd_per_hour or 0.0 for g in fleet.nodes if g.market == key)
        case _:
            used = _counted(name, fleet)
    return float(used)


def _counted(name: str, fleet: Fleet) -> float:
    """Return what a fleet uses of a limit on all of its nodes."""
    workers = fleet.workers
    functions = fleet.functions.function_count if fleet.functions else 0
    match name:
        case "max_nodes":
            return sum(group.node_count for group in fleet.nodes) + functions
        case "max_count_per_pool":
            return max((group.node_count for group in workers), default=0)
        case "max_pools":
            return len({group.offer.pool for group in workers if group.offer})
        case _:
            on_demand = sum(g.node_count for g in workers if g.market is Market.ON_DEMAND)
            return on_demand / max(1, sum(g.node_count for g in workers))


def _vcpus_used(limits: Limits, fleet: Fleet, quota: str) -> float:
    """Return the vCPUs of one quota, rounded up to the limit where no further node fits."""
    market_name, _, quota_class = quota.partition(".")
    market = Market(market_name)
    code = QUOTA_CODES.get((quota_class, market), quota_class)
    counted = [
        group
        for group in fleet.nodes
        if group.market is market
        and QUOTA_CODES.get((group.instance_type.quota_class or "", market)) == code
    ]
    by_region: dict[str, float] = {}
    for group in counted:
        region = group.offer.region if group.offer else ""
        vcpus = group.node_count * group.instance_type.vcpu_count
        by_region[region] = by_region.get(region, 0.0) + vcpus
    if not counted:
        return 0.0
    used = max(by_region.values())
    smallest = min(group.instance_type.vcpu_count for group in counted)
    most = limits.max_vcpus[quota_class, market]
    return float(most) if used + smallest > most else used
