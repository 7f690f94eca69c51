"""A plan as tables."""

from collections.abc import Sequence

from spotwright.adapters.report import words
from spotwright.cli.fleet_text import fleet_text
from spotwright.cli.terminal import console, print_table
from spotwright.domain.fleet import Fleet, NodeGroup, Role
from spotwright.domain.plan import Alternative, FrontierPoint, Objective, Plan, PoolChange
from spotwright.domain.units import format_duration, format_usd


def print_plan(plan: Plan, *, job_name: str) -> None:
    """Print what to rent, what it does, how good it is and why."""
    out = console()
    out.print(f"{job_name}: {_headline(plan)}")
    out.print()
    print_table(("figure", "planned>", "90 % interval"), _figures(plan))
    out.print()
    print_table(
        ("role", "count>", "type", "zone", "market", "$/h each>", "$/h>"),
        _fleet_rows(plan.prediction.fleet),
    )
    _print_lines(_changes(plan.changes))
    _print_lines(_reasons(plan))
    if plan.alternatives:
        out.print()
        print_table(
            ("alternative", "fleet", "cost>", "duration>", "gives up"),
            [_alternative_row(alternative) for alternative in plan.alternatives],
        )
    if plan.objective is Objective.PARETO and plan.frontier:
        out.print()
        columns = ("duration>", "cost>", "no less than>", "the cheapest fleet that fast")
        print_table(columns, [_frontier_row(point) for point in plan.frontier])
    _print_lines(_remarks(plan))


def gap_text(plan: Plan) -> str:
    """Return how much better the optimum could still be."""
    return _plain(words.gap(plan))


def _headline(plan: Plan) -> str:
    status, floor = words.STATUS_NAMES[plan.status], _plain(" ".join(words.floor(plan)))
    if plan.gap_fraction >= 1:
        return f"{status}: nothing better is ruled out yet"
    return f"{status}: no fleet that meets the goal {floor} (gap {gap_text(plan)})"


def _figures(plan: Plan) -> list[tuple[str, str, str]]:
    p, cost = plan.prediction, plan.cost_interval_usd
    rows = [
        ("cost", format_usd(plan.cost_usd), words.cost_range(cost)),
        ("duration", format_duration(p.duration_s.mid), _plain(words.duration_range(p.duration_s))),
    ]
    if plan.deadline_probability is not None:
        rows.append(
            ("P(deadline met)", f"{plan.deadline_probability:.1%}", "of interruptions alone")
        )
    if p.overall_deadline_probability is not None:
        rows.append(("with model error", f"{p.overall_deadline_probability:.1%}", ""))
    usd_per_hour = p.fleet.usd_per_hour
    if usd_per_hour is not None:
        beside = "functions are billed by use" if p.fleet.functions else ""
        rows.append(("rent", f"{format_usd(usd_per_hour)}/h", beside))
    return rows


def _fleet_rows(fleet: Fleet) -> list[tuple[str, ...]]:
    rows = [_group_row(group) for group in fleet.nodes]
    functions = fleet.functions
    if functions:
        name = f"lambda:{functions.memory_mb}"
        row = ("worker", str(functions.function_count), name, "-", "-", "by use", "by use")
        rows.insert(0, row)
    return rows


def _group_row(group: NodeGroup) -> tuple[str, ...]:
    offer = group.offer
    return (
        group.role,
        str(group.node_count),
        group.instance_type.name,
        offer.zone if offer else "-",
        group.market,
        f"{offer.price_usd_per_hour:.4f}" if offer else "-",
        "-" if group.usd_per_hour is None else f"{group.usd_per_hour:.4f}",
    )


def _changes(changes: Sequence[PoolChange]) -> list[str]:
    """Say what to add and to stop, or that what runs stays."""
    if changes and all(change.running_count == change.planned_count for change in changes):
        return ["change: none, what runs is what is planned"]
    return [f"change: {_change_text(change)}" for change in changes]


def _change_text(change: PoolChange) -> str:
    counts = {
        "keep": change.kept_count,
        "add": change.added_count,
        "stop": change.stopped_count,
    }
    told = " and ".join(f"{verb} {count}" for verb, count in counts.items() if count)
    role = "ps=" if change.role is Role.PS else ""
    return f"{told} of {role}{change.pool}"


def _reasons(plan: Plan) -> list[str]:
    savings = [
        f"saving: {saving.change} saves {format_usd(saving.saves_usd)} ({saving.limit})"
        for saving in plan.savings
    ]
    return [*(f"why: {reason}" for reason in plan.why), *savings]


def _alternative_row(alternative: Alternative) -> tuple[str, ...]:
    p = alternative.prediction
    return (
        alternative.label,
        fleet_text(p.fleet),
        format_usd(alternative.cost_usd),
        format_duration(p.duration_s.mid),
        alternative.gives_up,
    )


def _frontier_row(point: FrontierPoint) -> tuple[str, ...]:
    return (
        format_duration(point.prediction.duration_s.mid),
        format_usd(point.cost_usd),
        words.floored_usd(point.lower_bound_usd),
        fleet_text(point.prediction.fleet),
    )


def _remarks(plan: Plan) -> list[str]:
    p = plan.prediction
    bottleneck = f"bottleneck: {p.bottleneck.replace('_', ' ')}"
    basis = f"(network at its {p.network_basis} rate)"
    return [f"{bottleneck} {basis}", *(f"note: {note}" for note in p.notes)]


def _print_lines(lines: Sequence[str]) -> None:
    """Print lines below an empty one."""
    out = console()
    if lines:
        out.print()
    for line in lines:
        out.print(line)


def _plain(text: str) -> str:
    """Return what was written for a page as text for a terminal."""
    return text.replace("\N{NO-BREAK SPACE}", " ")
