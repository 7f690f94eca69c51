"""Figures and sentences for people who decide."""

import math

from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.job import JobSpec, Target, TargetKind
from spotwright.domain.plan import Objective, Plan, PlanStatus
from spotwright.domain.prediction import Interval, Prediction
from spotwright.domain.units import format_duration, format_usd

ROLE_NAMES = {Role.WORKER: "worker", Role.PS: "parameter server"}
OBJECTIVE_NAMES = {
    Objective.COST: "lowest cost",
    Objective.TIME: "shortest time",
    Objective.PARETO: "cost against time",
}
STATUS_NAMES = {
    PlanStatus.OPTIMAL: "optimal, proved",
    PlanStatus.FEASIBLE: "feasible, the proof is not complete",
    PlanStatus.INFEASIBLE: "infeasible, proved",
}
_TIMES = "\N{MULTIPLICATION SIGN}"
_SHOWN_STEPS_S = ((72 * 3600, 8640.0), (7200, 360.0), (120, 6.0))  # tenths of d, h and min
_COUNT_UNITS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def headline(job: JobSpec, plan: Plan) -> str:
    """Say in one sentence what is reached, by when, for how much, how surely, and the proof."""
    if plan.status is PlanStatus.INFEASIBLE:
        return f"No fleet that the limits allow meets the goal; the closest {_reached(job, plan)}."
    return f"{job.name} {_reached(job, plan)}; {proof(plan)}."


def proof(plan: Plan) -> str:
    """Say what no other fleet can do."""
    known = f"no fleet that meets the goal {' '.join(floor(plan))}"
    if plan.status is PlanStatus.FEASIBLE:
        return f"{known}, and the search ended before it could rule out {gap(plan)} better"
    return known


def floor(plan: Plan) -> tuple[str, str]:
    """Return what no fleet does, and the bound, rounded so that it stays true."""
    if plan.lower_bound_s is not None:
        return "is faster than", duration(_floored_s(plan.lower_bound_s))
    return "costs less than", floored_usd(plan.lower_bound_usd)


def floored_usd(amount: float) -> str:
    """Print a lower bound, rounded down to what `format_usd` shows."""
    steps = 100 if amount >= 1 else 10_000
    return format_usd(math.floor(amount * steps * (1 + 1e-12)) / steps)


def gap(plan: Plan) -> str:
    """Return how much better the optimum could still be, rounded up."""
    percent = math.ceil(plan.gap_fraction * 1e4 * (1 - 1e-9)) / 100
    return kept(f"{percent:.2f} %")


def in_time_probability(plan: Plan) -> float | None:
    """Return the probability of the deadline with the model's own error counted."""
    return plan.prediction.overall_deadline_probability


def spot_probability(plan: Plan) -> float | None:
    """Return the probability of the deadline under the spot model, the simulated one first."""
    simulated = plan.deadline_probability
    return plan.prediction.deadline_probability if simulated is None else simulated


def probability(fraction: float) -> str:
    """Print a probability without ever rounding to certainty."""
    if fraction >= 0.9995:
        return kept("over 99.9 %")
    if fraction <= 0.0005:
        return kept("under 0.1 %")
    return kept(f"{fraction * 100:.1f} %")


def kept(text: str) -> str:
    """Keep a figure and its unit on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def share(fraction: float) -> str:
    """Print part of a whole."""
    return kept("under 1 %" if 0 < fraction < 0.01 else f"{fraction * 100:.0f} %")


def duration(seconds: float) -> str:
    """Print a duration that may have no end."""
    return kept(format_duration(seconds)) if math.isfinite(seconds) else "never"


def usd(amount: float | None) -> str:
    """Print an amount that may not be known."""
    return format_usd(amount) if amount is not None and math.isfinite(amount) else "not known"


def duration_range(interval: Interval) -> str:
    """Print the 90 % interval of a duration."""
    return f"{duration(interval.low)} to {duration(interval.high)}"


def cost_range(interval: Interval) -> str:
    """Print the 90 % interval of a cost."""
    return f"{format_usd(interval.low)} to {format_usd(interval.high)}"


def sentence(text: str) -> str:
    """Begin with a capital, unless the first word is a name such as g5.xlarge; end with a stop."""
    first = text.split(" ", maxsplit=1)[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."


def against(own_usd: float, other_usd: float) -> str:
    """Say how much dearer or cheaper another fleet is."""
    ratio = other_usd / own_usd
    if not math.isfinite(ratio):
        return ""
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{(ratio - 1) * 100:+.0f} %"


def fleet_text(prediction: Prediction) -> str:
    """Return a fleet in one line."""
    fleet = prediction.fleet
    names = [functions_text(fleet)] if fleet.functions else []
    return " + ".join([*names, *(group_text(group) for group in fleet.nodes)])


def group_text(group: NodeGroup) -> str:
    """Return a group as count, type, zone and market."""
    place = f", {group.offer.zone}, {group.offer.market}" if group.offer else ""
    return f"{group.node_count} {_TIMES} {group.instance_type.name}{place}"


def functions_text(fleet: Fleet) -> str:
    """Return the functions of a serverless fleet."""
    functions = fleet.functions
    if functions is None:
        return ""
    return f"{functions.function_count} {_TIMES} Lambda, {functions.memory_mb:,} MB"


def goal_text(target: Target) -> str:
    """Return what the goal counts, with a verb."""
    if target.kind is TargetKind.LOSS:
        return f"reaches a loss of {target.value:g}"
    unit = target.kind.removesuffix("s") if target.value == 1 else str(target.kind)
    return f"trains {_count(target.value)} {unit}"


def deadline_text(job: JobSpec, prediction: Prediction) -> str | None:
    """Say how the expected end lies to the deadline."""
    deadline_s = job.goal.deadline_s
    if deadline_s is None:
        return None
    spare_s = deadline_s - prediction.duration_s.mid
    side = "before" if spare_s >= 0 else "after"
    return f"{duration(abs(spare_s))} {side} the deadline of {duration(deadline_s)}"


def _reached(job: JobSpec, plan: Plan) -> str:
    expected = plan.prediction.duration_s
    margin = deadline_text(job, plan.prediction)
    known, overall = spot_probability(plan), in_time_probability(plan)
    if margin is None or known is None:
        surely = f"with 90 % probability within {duration_range(expected)}"
    else:
        surely = f"in time with a probability of {probability(known)}"
        if overall is not None:
            surely += f", or {probability(overall)} with the model's own error counted"
    when = f"in {duration(expected.mid)}" + (f", {margin}," if margin else "")
    return f"{goal_text(job.goal.target)} {when} for {format_usd(plan.cost_usd)}, {surely}"


def _count(value: float) -> str:
    for scale, name in _COUNT_UNITS:
        if value >= scale:
            return f"{value / scale:.4g} {name}"
    return f"{value:,.6g}" if value < 1e4 else f"{value:,.0f}"


def _floored_s(seconds: float) -> float:
    """Round down to the precision that `format_duration` shows."""
    if seconds <= 0:
        return 0.0
    shown = [step for least, step in _SHOWN_STEPS_S if seconds >= least]
    step = shown[0] if shown else 10.0 ** (math.floor(math.log10(seconds)) - 2)
    return math.floor(seconds / step * (1 + 1e-12)) * step
