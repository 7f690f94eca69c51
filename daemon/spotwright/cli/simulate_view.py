"""A simulation as a table and as JSON."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spotwright.cli.terminal import console, print_table
from spotwright.domain.offer import Pool
from spotwright.domain.units import format_duration, format_usd
from spotwright.simulator.summary import Bounds, Summary

if TYPE_CHECKING:
    from spotwright.cli.simulating import Told

_COLUMNS = (
    "policy", "cost>", "95 % bounds", "finish>", "p95 finish>", "late>", "95 % bounds",
    "nodes lost>", "changes>", "on-demand>",
)  # fmt: skip


def print_study(told: "Told") -> None:
    """Print what each policy came to, beside what was promised."""
    out, goal, promised = console(), told.job.goal, told.promised
    deadline = "none" if goal.deadline_s is None else format_duration(goal.deadline_s)
    out.print(f"{told.job.name}: {told.runs} runs of each policy, deadline {deadline}")
    out.print(f"market: {told.markets.text}")
    out.print(f"planned: {_fleet_text(promised.workers)}")
    out.print()
    print_table(_COLUMNS, [_row(policy, summary) for policy, summary in told.summaries.items()])
    out.print()
    chance = promised.deadline_probability
    surely = "" if chance is None else f", P(deadline met) {chance:.1%} of interruptions alone"
    out.print(
        f"the plan promised: {format_usd(promised.cost_usd)}, "
        f"{format_duration(promised.duration_s)}{surely}"
    )


def study_json(told: "Told") -> dict[str, Any]:
    """Return a simulation as JSON."""
    promised = told.promised
    return {
        "job": told.job.name,
        "runs": told.runs,
        "seed": told.seed,
        "market": told.markets.text,
        "deadline_s": told.job.goal.deadline_s,
        "promised": {
            "cost_usd": promised.cost_usd,
            "duration_s": promised.duration_s,
            "deadline_probability": promised.deadline_probability,
            "workers": {str(pool): count for pool, count in sorted(promised.workers.items())},
        },
        "policies": {policy: _summary_json(s) for policy, s in told.summaries.items()},
    }


def _summary_json(summary: Summary) -> dict[str, Any]:
    return {
        "runs": summary.runs,
        "cost_usd": summary.cost_usd.mid,
        "low_cost_usd": _known(summary.cost_usd.low),
        "high_cost_usd": _known(summary.cost_usd.high),
        "finish_s": summary.finish_s,
        "finish_p95_s": summary.finish_p95_s,
        "unfinished": summary.unfinished,
        "late": summary.misses,
        "late_fraction": summary.miss_fraction.mid,
        "low_late_fraction": summary.miss_fraction.low,
        "high_late_fraction": summary.miss_fraction.high,
        "nodes_lost": summary.losses,
        "interruptions": summary.interruptions,
        "changes": summary.changes,
        "on_demand_fraction": summary.on_demand_fraction,
    }


def _row(policy: str, summary: Summary) -> tuple[str, ...]:
    cost, late = summary.cost_usd, summary.miss_fraction
    return (
        policy,
        format_usd(cost.mid),
        _cost_range(cost),
        _time(summary.finish_s),
        _time(summary.finish_p95_s),
        f"{late.mid:.1%}",
        _share_range(late),
        f"{summary.losses:.1f}",
        f"{summary.changes:.1f}",
        f"{summary.on_demand_fraction:.0%}",
    )


def _time(seconds: float | None) -> str:
    return "never" if seconds is None else format_duration(seconds)


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


def _cost_range(cost: Bounds) -> str:
    if not math.isfinite(cost.high):
        return "of one run: none"
    return f"{format_usd(max(cost.low, 0.0))} to {format_usd(cost.high)}"


def _share_range(share: Bounds) -> str:
    return f"{share.low:.1%} to {share.high:.1%}"


def _fleet_text(workers: Mapping[Pool, int]) -> str:
    return " + ".join(
        f"{pool.instance_type}*{count}@{pool.zone}/{pool.market}"
        for pool, count in sorted(workers.items())
    )
