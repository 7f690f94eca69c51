"""Figures and sentences about a job, for those who have to explain its bill."""

from collections.abc import Callable
from datetime import UTC, datetime

from spotwright.adapters.report.words import duration, kept
from spotwright.domain.accounts import PoolAccount
from spotwright.domain.job_run import JobState
from spotwright.domain.units import format_usd
from spotwright.usecases.job_report import JobReport, ReportLine

NOTHING = "\N{EN DASH}"
_FORTUNE_USD = 10_000
_MANY_TIMES = 10  # a larger ratio is told as such


def headline(report: JobReport) -> str:
    """Say in one or two sentences how the job keeps, or kept, to its plan."""
    job, time, cost = report.job, line_of(report, "duration_s"), line_of(report, "cost_usd")
    planned = f"planned were {_time(time.planned)} and {money(cost.planned)}"
    if job.state is JobState.PENDING:
        return f"No progress was reported yet; {planned}."
    if job.state is JobState.SUCCEEDED:
        return f"Reached its goal in {_time(time.measured)} for {_spent(report)}; {planned}."
    if job.state is JobState.STOPPED:
        took = f"after {_time(time.measured)} and {_spent(report)}"
        return f"Stopped {took}, {_reached(report)}; {planned} for all of it."
    so_far = f"Running for {_time(line_of(report, 'elapsed_s').measured)}, {_reached(report)}"
    so_far = f"{so_far}, {_spent(report)} spent."
    if time.measured is None:
        return f"{so_far} When it will end cannot be told; {planned}."
    to_come = f"it will take {_time(time.measured)}"
    if cost.measured is not None:
        to_come += f" and cost {money(cost.measured)}"
    return f"{so_far} If it goes on as it did, {to_come}; {planned}."


def tiles(report: JobReport) -> list[tuple[str, str, str]]:
    """Return the figures that matter most: name, figure, and what stands beside it."""
    has_ended = report.job.state.has_ended
    time, cost = line_of(report, "duration_s"), line_of(report, "cost_usd")
    progress, deadline = line_of(report, "progress_fraction"), line_of(report, "deadline_s")
    told = [
        (
            "Time taken" if has_ended else "Expected time",
            _time(time.measured),
            _beside(time, _time),
        ),
        ("Cost" if has_ended else "Expected cost", _sum(report, cost), _beside(cost, money)),
        ("Progress", _share(progress.measured), f"{_share(progress.planned)} planned by now"),
    ]
    if deadline.planned is not None:
        told.append(("Deadline", _time(deadline.planned), _spare(deadline.planned, time.measured)))
    if report.accounts is not None and report.accounts.timeline:
        count = sum(pool.interruption_count for pool in report.accounts.pools)
        told.append(("Interruptions", str(count), _lost(report)))
    return told


def paid_so_far(report: JobReport) -> str:
    """Name the line of what was paid, and what is not in it."""
    unpriced = report.accounts.unpriced_node_hours if report.accounts else 0.0
    return f"so far, without {unpriced:.1f} node-hours of no known price" if unpriced else "so far"


def figure_rows(report: JobReport) -> list[list[str]]:
    """Return every figure as planned and as measured."""
    return [_figure_row(line) for line in report.lines]


def line_of(report: JobReport, figure: str) -> ReportLine:
    """Return one figure of a report; an older daemon may not tell it."""
    unknown = ReportLine(figure=figure, planned=None, measured=None)
    return next((line for line in report.lines if line.figure == figure), unknown)


def place(pool: PoolAccount) -> str:
    """Return the type and the zone of a pool, with its role."""
    role = f", {pool.role.replace('ps', 'parameter server')}" if pool.role else ""
    return f"{pool.instance_type or '?'} in {pool.zone or '?'}{role}"


def money(amount: float | None) -> str:
    """Print an amount that may not be known; cents of a fortune are left out."""
    if amount is None:
        return NOTHING
    return format_usd(amount) if amount < _FORTUNE_USD else f"${amount:,.0f}"


def percent(fraction: float) -> str:
    """Print a share with one decimal."""
    return kept(f"{fraction * 100:.1f} %")


def moment(time: datetime) -> str:
    """Print a time in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _figure_row(line: ReportLine) -> list[str]:
    endings: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("_per_s", " per second", lambda value: f"{value:,.1f}"),
        ("_usd", "", format_usd),
        ("_s", "", duration),
        ("_fraction", "", percent),
    )
    ending, unit, text = next(
        (known for known in endings if line.figure.endswith(known[0])),
        ("", "", lambda value: f"{value:,.6g}"),
    )
    name = line.figure.removesuffix(ending).replace("_", " ") + unit
    values = [NOTHING if v is None else text(v) for v in (line.planned, line.measured)]
    return [name[:1].upper() + name[1:], *values, _difference(line)]


def _difference(line: ReportLine) -> str:
    if line.planned is None or line.measured is None:
        return NOTHING
    if line.figure.endswith("_fraction"):
        return kept(f"{(line.measured - line.planned) * 100:+.1f} points")
    if not line.planned:
        return NOTHING
    ratio = line.measured / line.planned
    return kept(f"{ratio:,.0f} times" if ratio >= _MANY_TIMES else f"{(ratio - 1) * 100:+.1f} %")


def _beside(line: ReportLine, text: Callable[[float | None], str]) -> str:
    difference = _difference(line)
    told = f"planned {text(line.planned)}"
    return told if difference == NOTHING else f"{told}, {difference}"


def _spent(report: JobReport) -> str:
    """Return what was paid so far; where some of it has no price, what is known."""
    accounts, spent = report.accounts, line_of(report, "cost_so_far_usd").measured
    if spent is None and accounts is not None and accounts.timeline:
        return f"at least {money(accounts.priced_usd)}"
    return money(spent)


def _sum(report: JobReport, cost: ReportLine) -> str:
    if cost.measured is None and report.accounts is not None and report.accounts.timeline:
        return "not known"
    return money(cost.measured)


def _lost(report: JobReport) -> str:
    lost_s, lost_usd = (
        line_of(report, name).measured for name in ("lost_work_s", "lost_work_cost_usd")
    )
    if lost_s is None:
        return "work lost: not known"
    if lost_s == 0:
        return "no work lost"
    return f"work lost: {duration(lost_s)}" + (f", {money(lost_usd)}" if lost_usd else "")


def _spare(deadline_s: float, duration_s: float | None) -> str:
    if duration_s is None:
        return ""
    spare_s = deadline_s - duration_s
    return f"{duration(abs(spare_s))} {'to spare' if spare_s >= 0 else 'too late'}"


def _reached(report: JobReport) -> str:
    fraction = report.job.progress_fraction
    return "progress not known" if fraction is None else f"{percent(fraction)} of the goal reached"


def _time(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration(seconds)


def _share(fraction: float | None) -> str:
    return NOTHING if fraction is None else percent(fraction)
