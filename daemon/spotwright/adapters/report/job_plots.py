"""What the charts of a job show. Seconds count from the first node or the first progress."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.adapters.report.axes import cost_ticks, share_ticks
from spotwright.adapters.report.job_words import line_of
from spotwright.adapters.report.line_chart import Growth, Point
from spotwright.adapters.report.node_chart import NodesOverTime, PoolArea, ShownEvent
from spotwright.domain.accounts import JobAccounts, NodeSpan
from spotwright.domain.ledger import RentedPool
from spotwright.usecases.job_report import JobReport

_COLOURS = {"spot": ("spot", 4), "on-demand": ("on_demand", 3)}  # of a market, and how many
_LONGEST = 2.0  # of what is planned or known: so far a forecast is drawn
_BAD_KINDS = {
    *("interruption-notice", "agent-silent", "progress-fell-back", "deadline-passed"),
    *("node-lost", "deadline-at-risk", "ceiling-reached", "goal-out-of-reach"),
}


def nodes_over_time(report: JobReport, accounts: JobAccounts) -> NodesOverTime:
    """Return the pools in the order of the accounts, from the first sighting to the last."""
    start = _first_time(report)
    spans: dict[RentedPool, list[NodeSpan]] = defaultdict(list)
    for span in accounts.timeline:
        spans[span.pool].append(span)
    pools = [account.pool for account in accounts.pools if account.pool in spans]
    areas = [
        PoolArea(
            name=f"{pool.instance_type or '?'} in {pool.zone or '?'}, {pool.market or '?'}",
            class_=class_,
            intervals=tuple(
                (_seconds(span.start_time, start), _seconds(span.end_time, start))
                for span in spans[pool]
            ),
        )
        for pool, class_ in zip(pools, _classes(pools), strict=True)
    ]
    seconds = _seconds(accounts.until, start)
    events = [
        ShownEvent(
            seconds=_seconds(mark.time, start),
            text=f"{mark.time:%Y-%m-%d %H:%M:%S} {mark.kind}: {mark.text}",
            is_bad=mark.kind in _BAD_KINDS,
        )
        for mark in accounts.marks
    ]
    return NodesOverTime(
        areas=tuple(areas),
        planned_node_count=sum(account.planned_node_count for account in accounts.pools),
        events=tuple(event for event in events if 0 <= event.seconds <= seconds),
        seconds=seconds,
    )


def progress_growth(report: JobReport) -> Growth:
    """Return how far the job came, beside a straight line to the planned end."""
    begin, planned_s, duration_s = _times(report)
    marks = report.accounts.progress if report.accounts else ()
    measured = tuple((_seconds(m.time, _first_time(report)), m.fraction) for m in marks)
    goes_on = duration_s is not None and measured and not report.job.state.has_ended
    return _bounded(
        report,
        Growth(
            name="share of the goal",
            ticks=lambda scale, font_px: share_ticks(scale, font_px=font_px),
            planned=((begin, 0.0), (begin + planned_s, 1.0)),
            measured=measured,
            expected=(measured[-1], (begin + (duration_s or 0.0), 1.0)) if goes_on else (),
        ),
    )


def spending_growth(report: JobReport) -> Growth:
    """Return what was paid, beside a straight line to the planned cost."""
    begin, planned_s, duration_s = _times(report)
    cost, measured = line_of(report, "cost_usd"), _spending(report)
    expected: tuple[Point, ...] = ()
    if duration_s is not None and cost.measured is not None and measured:
        expected = (measured[-1], (begin + duration_s, cost.measured))
    return _bounded(
        report,
        Growth(
            name="dollars spent",
            ticks=lambda scale, font_px: cost_ticks(scale, font_px=font_px),
            planned=((begin, 0.0), (begin + planned_s, cost.planned or 0.0)),
            measured=measured,
            expected=() if report.job.state.has_ended else expected,
        ),
    )


def _bounded(report: JobReport, growth: Growth) -> Growth:
    """Return a growth with its deadline, and a forecast that reaches no farther than it tells."""
    begin, _, _ = _times(report)
    told_s = line_of(report, "deadline_s").planned
    deadline_s = None if told_s is None else begin + told_s
    known = [seconds for seconds, _ in (*growth.planned, *growth.measured)]
    shown = _until(growth.expected, _LONGEST * max([*known, deadline_s or 0.0]))
    return replace(growth, expected=shown, deadline_s=deadline_s)


def _until(line: tuple[Point, ...], end_s: float) -> tuple[Point, ...]:
    """Return a straight line as far as some time: forecasts of the first minutes reach far."""
    if not line or line[-1][0] <= end_s:
        return line
    (start_s, low), (far_s, high) = line
    return line[0], (end_s, low + (high - low) * (end_s - start_s) / (far_s - start_s))


def _spending(report: JobReport) -> tuple[Point, ...]:
    """Return the corners of what was paid: the rent changes where a node comes or goes."""
    spans = report.accounts.timeline if report.accounts else ()
    rents: dict[datetime, float] = defaultdict(float)  # dollars per second, as they change
    for span in spans:
        usd_per_s = (span.price_usd_per_hour or 0.0) / 3600
        rents[span.start_time] += usd_per_s
        rents[span.end_time] -= usd_per_s
    points: list[Point] = []
    usd, usd_per_s, start = 0.0, 0.0, _first_time(report)
    for time in sorted(rents):
        seconds = _seconds(time, start)
        usd += usd_per_s * (seconds - points[-1][0]) if points else 0.0
        points.append((seconds, usd))
        usd_per_s += rents[time]
    return tuple(points)


def _classes(pools: Sequence[RentedPool]) -> list[str]:
    """Return a colour for each pool: cool ones for spot, warm ones for on-demand."""
    taken: Counter[str] = Counter()
    classes = []
    for pool in pools:
        family, most = _COLOURS.get(pool.market, ("unknown", 0))
        taken[family] += 1
        classes.append(f"{family}_{(taken[family] - 1) % most + 1}" if most else family)
    return classes


def _times(report: JobReport) -> tuple[float, float, float | None]:
    """Return when training began, how long it was to take, and how long it takes."""
    job, duration = report.job, line_of(report, "duration_s")
    begin = _seconds(job.start_time or job.create_time, _first_time(report))
    return begin, duration.planned or 0.0, duration.measured


def _first_time(report: JobReport) -> datetime:
    job, accounts = report.job, report.accounts
    seen = [span.start_time for span in accounts.timeline[:1]] if accounts else []
    return min([job.start_time or job.create_time, *seen])


def _seconds(time: datetime, start: datetime) -> float:
    return max(0.0, (time - start).total_seconds())
