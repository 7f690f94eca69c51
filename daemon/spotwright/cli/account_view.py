"""The accounts of a job, for people, as CSV and as JSON."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from spotwright.domain.accounts import JobAccounts, NodeSpan, PoolAccount
from spotwright.domain.units import format_usd

if TYPE_CHECKING:
    from spotwright.usecases.job_report import JobReport

POOL_COLUMNS = (
    *("pool", "planned market", "granted market", "planned nodes>", "granted node-hours>"),
    *("below plan>", "interruptions>", "price/h>", "planned cost>", "cost so far>"),
)
CSV_COLUMNS = ("job_id", *(field.name for field in fields(PoolAccount)))


def pool_rows(accounts: JobAccounts) -> Sequence[tuple[str, ...]]:
    """Return the pools as rows of POOL_COLUMNS, and their sum."""
    return [*(_pool_row(pool) for pool in accounts.pools), _sum_row(accounts)]


def pools_csv(report: "JobReport") -> str:
    """Return a row for each pool under CSV_COLUMNS; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for pool in report.accounts.pools if report.accounts else ():
        cells = [getattr(pool, name) for name in CSV_COLUMNS[1:]]
        writer.writerow([report.job.job_id, *("" if cell is None else cell for cell in cells)])
    return text.getvalue()


def accounts_json(accounts: JobAccounts | None) -> dict[str, Any]:
    """Return accounts as JSON; what is not known is null."""
    if accounts is None:
        return {"pools": [], "timeline": []}
    return {
        "pools": [asdict(pool) for pool in accounts.pools],
        "timeline": [_span_json(span) for span in accounts.timeline],
        "event_counts": {count.kind: count.event_count for count in accounts.event_counts},
        "marks": [asdict(mark) | {"time": mark.time.isoformat()} for mark in accounts.marks],
        "progress": [
            {"time": point.time.isoformat(), "fraction": point.fraction}
            for point in accounts.progress
        ],
        "priced_usd": accounts.priced_usd,
        "unpriced_node_hours": accounts.unpriced_node_hours,
        "until_time": accounts.until.isoformat(),
    }


def _span_json(span: NodeSpan) -> dict[str, Any]:
    return {
        "agent_id": span.agent_id,
        "instance_id": span.instance_id,
        **span.pool._asdict(),
        "start_time": span.start_time.isoformat(),
        "end_time": span.end_time.isoformat(),
        "price_usd_per_hour": span.price_usd_per_hour,
        "is_running": span.is_running,
    }


def _pool_row(pool: PoolAccount) -> tuple[str, ...]:
    below = pool.below_planned_fraction
    return (
        f"{pool.instance_type or '?'}@{pool.zone or '?'}",
        pool.planned_market or "-",
        (pool.market or "unknown") if pool.granted_node_hours else "-",
        str(pool.planned_node_count),
        f"{pool.granted_node_hours:.1f}",
        "-" if below is None else f"{below:.1%}",
        str(pool.interruption_count),
        *(
            "-" if usd is None else format_usd(usd)
            for usd in (pool.price_usd_per_hour, pool.planned_usd, pool.actual_usd)
        ),
    )


def _sum_row(accounts: JobAccounts) -> tuple[str, ...]:
    pools = accounts.pools
    spent = accounts.spent_usd
    return (
        *("all", "", ""),
        str(sum(pool.planned_node_count for pool in pools)),
        f"{sum(pool.granted_node_hours for pool in pools):.1f}",
        "",
        str(sum(pool.interruption_count for pool in pools)),
        "",
        format_usd(sum(pool.planned_usd or 0.0 for pool in pools)),
        "-" if spent is None else format_usd(spent),
    )
