"""Jobs, their events and reports, for people and as JSON."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spotwright.cli.account_view import accounts_json
from spotwright.cli.terminal import print_table
from spotwright.domain.job_run import Event, JobRun
from spotwright.domain.prediction import Interval
from spotwright.domain.units import format_duration, format_usd

if TYPE_CHECKING:
    from spotwright.domain.live_term import LiveTerm
    from spotwright.usecases.job_report import JobReport, ReportLine

TERM_COLUMNS = (
    *("pool", "term", "planned>", "measured>", "ratio>"),
    *("planned Gbit/s>", "measured Gbit/s>"),
)
JOB_COLUMNS = (
    *("job", "state", "progress>", "running for>", "done after>", "costs>"),
    *("created (UTC)", "controller"),
)


def job_json(job: JobRun) -> dict[str, Any]:
    """Return a job as JSON; what is not known is null."""
    values = {key: _plain(value) for key, value in asdict(job).items() if key != "course"}
    course = job.course
    return values | {
        "steer": course.steer,
        "first_plan_id": job.first_plan_id,
        "spent_usd": course.spent_usd,
        "forecast": None if course.forecast is None else asdict(course.forecast),
    }


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as JSON."""
    return {key: _plain(value) for key, value in asdict(event).items()}


def report_json(report: "JobReport") -> dict[str, Any]:
    """Return a report as JSON."""
    lines = {
        line.figure: {"planned": line.planned, "measured": line.measured} for line in report.lines
    }
    terms = [asdict(term) for term in report.terms]
    told = {"job": job_json(report.job), "figures": lines, "terms": terms}
    return told | accounts_json(report.accounts)


def job_row(job: JobRun, now: datetime) -> tuple[str, ...]:
    """Return a job as a row of JOB_COLUMNS."""
    return (
        job.job_id,
        job.state,
        fraction_text(job.progress_fraction),
        _elapsed_text(job, now),
        _duration_forecast(job),
        _cost_forecast(job),
        _time_text(job.create_time),
        job.controller or "-",
    )


def print_job(job: JobRun, now: datetime) -> None:
    """Print everything about one job."""
    progress = job.progress
    print_table(
        ("fact", "value"),
        [
            ("job", job.job_id),
            ("name", job.name),
            ("plan", job.plan_id),
            ("first plan", job.first_plan_id),
            ("state", job.state),
            ("progress", fraction_text(job.progress_fraction)),
            ("samples", _count_text(progress.samples)),
            ("steps", _count_text(progress.steps)),
            ("loss", "-" if progress.loss is None else f"{progress.loss:.5g}"),
            ("created", _time_text(job.create_time)),
            ("started", _time_text(job.start_time)),
            ("ended", _time_text(job.end_time)),
            ("running for", _elapsed_text(job, now)),
            ("done after", _duration_forecast(job, with_interval=True)),
            ("spent", "-" if job.course.spent_usd is None else format_usd(job.course.spent_usd)),
            ("costs", _cost_forecast(job, with_interval=True)),
            ("steered", job.course.steer),
            ("controller", job.controller or "-"),
        ],
    )


def event_line(event: Event) -> str:
    """Return an event in one line."""
    return f"{_time_text(event.time)}  {event.kind:<20} {event.text}"


def job_line(job: JobRun) -> str:
    """Return where a job stands in one line."""
    progress = fraction_text(job.progress_fraction)
    figures = [
        f"{name} {_count_text(value)}"
        for name, value in (("samples", job.progress.samples), ("steps", job.progress.steps))
        if value is not None
    ]
    if job.progress.loss is not None:
        figures.append(f"loss {job.progress.loss:.5g}")
    details = f" ({', '.join(figures)})" if figures else ""
    return f"{_time_text(job.update_time)}  {job.job_id} {job.state}, progress {progress}{details}"


def report_rows(report: "JobReport") -> Sequence[tuple[str, ...]]:
    """Return a report as rows: figure, planned, measured, difference."""
    return [_report_row(line) for line in report.lines]


def term_rows(report: "JobReport") -> Sequence[tuple[str, ...]]:
    """Return the terms of a step as rows of TERM_COLUMNS."""
    return [_term_row(term) for term in report.terms]


def findings(report: "JobReport") -> list[str]:
    """Return what is wrong with a job's steps, in words."""
    return [term.text for term in report.terms if term.text]


def fraction_text(fraction: float | None) -> str:
    """Print a share as percent."""
    return "-" if fraction is None else f"{fraction:.1%}"


def _report_row(line: "ReportLine") -> tuple[str, ...]:
    name, text = _figure(line.figure)
    planned, measured = (
        "-" if value is None else text(value) for value in (line.planned, line.measured)
    )
    return name, planned, measured, _difference(line)


def _term_row(term: "LiveTerm") -> tuple[str, ...]:
    measured = "-" if term.measured_s is None else format_duration(term.measured_s)
    ratio = "-"
    if term.measured_s is not None and term.planned_s > 0:
        ratio = f"{term.measured_s / term.planned_s:.2f}x"
    rates = (
        "-" if mbps is None else f"{mbps / 1000:.3g}"
        for mbps in (term.planned_mbps, term.measured_mbps)
    )
    name = f"{term.term} *" if term.is_bottleneck else term.term
    return (term.instance_type, name, format_duration(term.planned_s), measured, ratio, *rates)


def _figure(figure: str) -> tuple[str, Callable[[float], str]]:
    """Return a figure's name for people, and how its values are printed."""
    units: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("_per_s", "/s", lambda value: f"{value:,.1f}"),
        ("_usd", "", format_usd),
        ("_s", "", format_duration),
        ("_fraction", "", fraction_text),
    )
    for ending, shown, text in units:
        if figure.endswith(ending):
            return figure.removesuffix(ending).replace("_", " ") + shown, text
    return figure, lambda value: f"{value:,.6g}"


def _difference(line: "ReportLine") -> str:
    if line.planned is None or line.measured is None:
        return "-"
    if line.figure.endswith("_fraction"):
        return f"{(line.measured - line.planned) * 100:+.1f} points"
    if line.planned == 0:
        return "-"
    return f"{line.measured / line.planned - 1:+.1%}"


def _duration_forecast(job: JobRun, *, with_interval: bool = False) -> str:
    told = None if job.course.forecast is None else job.course.forecast.duration_s
    return _forecast_text(told, format_duration, with_interval=with_interval)


def _cost_forecast(job: JobRun, *, with_interval: bool = False) -> str:
    told = None if job.course.forecast is None else job.course.forecast.cost_usd
    return _forecast_text(told, format_usd, with_interval=with_interval)


def _forecast_text(
    told: Interval | None, text: Callable[[float], str], *, with_interval: bool
) -> str:
    if told is None:
        return "-"
    return (
        f"{text(told.mid)} ({text(told.low)} to {text(told.high)})"
        if with_interval
        else text(told.mid)
    )


def _elapsed_text(job: JobRun, now: datetime) -> str:
    if job.start_time is None:
        return "-"
    return format_duration(max(0.0, ((job.end_time or now) - job.start_time).total_seconds()))


def _count_text(count: float | None) -> str:
    return "-" if count is None else f"{count:,.0f}"


def _time_text(time: datetime | None) -> str:
    return "-" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
