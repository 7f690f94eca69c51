"""The figures of a job that its owner could change: goals, quotas, ceilings.

Each knows its name in the job file, its value now, and the job with another value. What a plan
would save by a looser limit, and the least change that makes an impossible job possible, are asked
of the planner by turning them one at a time.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from spotwright.domain.job import JobSpec, Limits
from spotwright.domain.units import format_duration, format_usd

_MOST_NODES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One figure of a job; looser is more, unless `falls`."""

    limit: str  # in the job file
    now: float
    whole: bool  # counts
    loosest: float  # beyond, it does not restrict any more
    turned: Callable[[float], JobSpec]
    text: Callable[[float], str]  # rounded so that what is printed suffices
    falls: bool = False
    shown: Callable[[float], str] = lambda value: f"{value:,.4g}"

    @property
    def is_used_up(self) -> bool:
        """Whether a fleet by itself uses some of it, whatever the job."""
        return self.limit.startswith("limits.") and not self.falls


def knobs(job: JobSpec) -> list[Knob]:
    """Return every figure that restricts the job."""
    return [*_goals(job), *_counts(job), *_quotas(job), *_ceilings(job)]


def turned(job: JobSpec, values: Mapping[str, float]) -> JobSpec:
    """Return the job with several figures changed, by their names in the job file."""
    for limit, value in values.items():
        job = next(knob for knob in knobs(job) if knob.limit == limit).turned(value)
    return job


def _goals(job: JobSpec) -> Iterator[Knob]:
    goal = job.goal
    if goal.deadline_s is not None:
        yield Knob(
            limit="goal.deadline",
            now=goal.deadline_s,
            whole=False,
            loosest=float("inf"),
            turned=lambda value: replace(job, goal=replace(goal, deadline_s=_or_none(value))),
            text=_duration,
            shown=format_duration,
        )
    if goal.budget_usd is not None:
        yield Knob(
            limit="goal.budget",
            now=goal.budget_usd,
            whole=False,
            loosest=float("inf"),
            turned=lambda value: replace(job, goal=replace(goal, budget_usd=_or_none(value))),
            text=_usd,
            shown=format_usd,
        )


def _counts(job: JobSpec) -> Iterator[Knob]:
    limits = job.limits
    yield _count(job, "max_nodes", limits.max_nodes)
    if limits.max_count_per_pool is not None:
        yield _count(job, "max_count_per_pool", limits.max_count_per_pool)
    if limits.max_pools is not None:
        yield _count(job, "max_pools", limits.max_pools)
    for name, most in sorted(limits.max_count_by_type.items()):
        yield Knob(
            limit=f"limits.max_count.{name}",
            now=most,
            whole=True,
            loosest=max(most, _MOST_NODES),
            turned=partial(_entry, job, "max_count_by_type", name, whole=True),
            text=_number,
        )


def _count(job: JobSpec, name: str, now: int) -> Knob:
    return Knob(
        limit=f"limits.{name}",
        now=now,
        whole=True,
        loosest=max(now, _MOST_NODES),
        turned=lambda value: _with(job, **{name: round(value)}),
        text=_number,
    )


def _quotas(job: JobSpec) -> Iterator[Knob]:
    limits = job.limits
    for (quota_class, market), most in sorted(limits.max_vcpus.items()):
        yield Knob(
            limit=f"limits.max_vcpus.{market}.{quota_class}",
            now=most,
            whole=True,
            loosest=max(most, _MOST_NODES * 192),
            turned=partial(_entry, job, "max_vcpus", (quota_class, market), whole=True),
            text=lambda value: f"{value:,.0f} vCPUs",
            shown=lambda value: f"{value:,.0f} vCPUs",
        )


def _ceilings(job: JobSpec) -> Iterator[Knob]:
    limits = job.limits
    for market, most in sorted(limits.max_usd_per_hour.items()):
        yield Knob(
            limit=f"limits.max_usd_per_hour.{market}",
            now=most,
            whole=False,
            loosest=1e6,
            turned=partial(_entry, job, "max_usd_per_hour", market, whole=False),
            text=lambda value: f"{_usd(value)} per hour",
        )
    if limits.min_on_demand_fraction > 0:
        yield Knob(
            limit="limits.min_on_demand",
            now=limits.min_on_demand_fraction,
            whole=False,
            loosest=0.0,
            turned=lambda value: _with(job, min_on_demand_fraction=value),
            text=lambda value: f"{math.floor(value * 1000) / 10:g}%",
            falls=True,
        )


def _with(job: JobSpec, **changes: object) -> JobSpec:
    limits: Limits = replace(job.limits, **changes)  # type: ignore[arg-type]
    return replace(job, limits=limits)


def _entry(job: JobSpec, name: str, key: object, value: float, *, whole: bool) -> JobSpec:
    """Return the job with one entry of a limit that has several changed."""
    entries: Mapping[object, float] = getattr(job.limits, name)
    return _with(job, **{name: {**entries, key: round(value) if whole else value}})


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _duration(seconds: float) -> str:
    """Print a duration rounded up, so that what is printed suffices."""
    unit = next((u for u in (86_400.0, 3600.0, 60.0) if seconds >= 2 * u), 0.0)
    unit = 259_200.0 / 3 if seconds >= 259_200.0 else min(unit, 3600.0)
    step = unit / 10 if unit else 10.0 ** (math.floor(math.log10(seconds)) - 2)
    return format_duration(math.ceil(seconds / step - 1e-9) * step)


def _usd(amount: float) -> str:
    """Print dollars rounded up, so that what is printed suffices."""
    step = 0.01 if amount >= 1 else 0.0001
    return format_usd(math.ceil(amount / step - 1e-9) * step)


def _number(value: float) -> str:
    return f"{value:,.0f}"
