"""A job as one self-contained HTML page: planned against measured, rented and paid."""

from spotwright.adapters.report import job_words
from spotwright.adapters.report.document import document
from spotwright.adapters.report.job_plots import nodes_over_time, progress_growth, spending_growth
from spotwright.adapters.report.line_chart import Growth, line_chart
from spotwright.adapters.report.markup import Html, items, joined, table, tag
from spotwright.adapters.report.node_chart import node_chart
from spotwright.adapters.report.sections import key_entry, section, tile
from spotwright.adapters.report.time_frame import SMALL, WIDE
from spotwright.adapters.report.words import sentence
from spotwright.domain.accounts import JobAccounts, PoolAccount
from spotwright.usecases.bill_words import bill_notes
from spotwright.usecases.job_report import JobReport

_LATEST_EVENTS = 100  # in the table; the log has all of them
_POOLS_HEAD = [
    *("Pool", "Market", "Nodes planned>", "Node-hours>", "Below plan>", "Interrupted>"),
    *("Price/h>", "Planned>", "Paid>"),
]


def render_job_report(report: JobReport) -> str:
    """Return the page that shows a job to those who have to explain its bill."""
    accounts = report.accounts
    parts = [_summary(report)]
    if accounts is not None and accounts.timeline:
        parts += [_nodes(report, accounts)]
    parts += [
        _growth("Progress against plan", progress_growth(report)),
        _growth(
            "Spending against plan", spending_growth(report), so_far=job_words.paid_so_far(report)
        ),
    ]
    if accounts is not None:
        parts += [_pools(accounts), _events(accounts)]
    parts += [_figures(report), _footer(report)]
    return document(f"{report.job.job_id}: job report", tag("main", *parts))


def _summary(report: JobReport) -> Html:
    tiles = [tile(*texts) for texts in job_words.tiles(report)]
    return tag(
        "header",
        tag("p", "Job report", class_="eyebrow"),
        tag("h1", report.job.job_id),
        tag("p", job_words.headline(report), class_="headline"),
        tag("dl", *tiles, class_="tiles"),
    )


def _nodes(report: JobReport, accounts: JobAccounts) -> Html:
    data = nodes_over_time(report, accounts)
    key = [key_entry(area.class_, area.name) for area in data.areas]
    key.append(key_entry("planned", f"planned: {data.planned_node_count} nodes"))
    if any(event.is_bad for event in data.events):
        key.append(key_entry("event bad", "a loss, a silence or a missed deadline"))
    if any(not event.is_bad for event in data.events):
        key.append(key_entry("event", "another event"))
    charts = [node_chart(data, picture) for picture in (WIDE, SMALL)]
    return section("Nodes over time", tag("figure", *charts, items(list(key), "key")))


def _growth(title: str, data: Growth, *, so_far: str = "so far") -> Html:
    key = [
        key_entry(name, text)
        for name, text, points in (
            ("planned", "planned", data.planned),
            ("measured", so_far, data.measured),
            ("expected", "if it goes on as it did", data.expected),
        )
        if len(points) > 1
    ]
    if data.deadline_s is not None:
        key.append(key_entry("deadline", "deadline"))
    charts = [line_chart(data, picture) for picture in (WIDE, SMALL)]
    return section(title, tag("figure", *charts, items(list(key), "key")))


def _pools(accounts: JobAccounts) -> Html:
    rows = [_pool_row(pool) for pool in accounts.pools]
    planned = [pool.planned_usd for pool in accounts.pools if pool.planned_usd is not None]
    foot = [
        *("Sum", "", str(sum(pool.planned_node_count for pool in accounts.pools))),
        f"{sum(pool.granted_node_hours for pool in accounts.pools):.1f}",
        *("", str(sum(pool.interruption_count for pool in accounts.pools)), ""),
        *(job_words.money(usd) for usd in (sum(planned), accounts.spent_usd)),
    ]
    notes = [sentence(text) for text in bill_notes(accounts)]
    told = [items(list(notes))] if notes else []
    return section(
        "What was rented", table("Pools, as planned and as granted", _POOLS_HEAD, rows, foot), *told
    )


def _pool_row(pool: PoolAccount) -> list[str]:
    below = pool.below_planned_fraction
    return [
        job_words.place(pool),
        _market(pool),
        str(pool.planned_node_count),
        f"{pool.granted_node_hours:.1f}",
        job_words.NOTHING if below is None else job_words.percent(below),
        str(pool.interruption_count),
        *(
            job_words.money(usd)
            for usd in (pool.price_usd_per_hour, pool.planned_usd, pool.actual_usd)
        ),
    ]


def _market(pool: PoolAccount) -> Html:
    """Return the market that was granted, and what the plan says about it."""
    granted = pool.market or "unknown"
    if not pool.granted_node_hours:
        return joined([granted, tag("span", ", none granted", class_="quiet")])
    if pool.planned_market is None:
        return joined([granted, tag("span", ", not planned", class_="quiet")])
    if pool.planned_market != pool.market:
        return joined([tag("b", granted, class_="over"), f", planned: {pool.planned_market}"])
    return joined([granted])


def _events(accounts: JobAccounts) -> Html:
    if not accounts.event_counts:
        return section("What happened", tag("p", "Nothing was logged.", class_="quiet"))
    counts = [[count.kind, str(count.event_count)] for count in accounts.event_counts]
    parts = [table("Events by kind", ["Kind", "How often>"], counts)]
    if accounts.marks:
        latest = accounts.marks[-_LATEST_EVENTS:]
        rows = [[job_words.moment(mark.time), mark.kind, mark.text] for mark in latest]
        told = table("The latest events", ["Time (UTC)", "Kind", "What happened"], rows)
        parts.append(tag("details", tag("summary", f"The latest {len(rows)} events"), told))
    return section("What happened", *parts)


def _figures(report: JobReport) -> Html:
    head = ["Figure", "Planned>", "Measured>", "Difference>"]
    rows = job_words.figure_rows(report)
    return section("All figures", table("Planned against measured", head, rows))


def _footer(report: JobReport) -> Html:
    job, accounts = report.job, report.accounts
    facts = {"Job": job.name, "Plan": job.plan_id, "State": str(job.state)}
    facts["Created"] = f"{job_words.moment(job.create_time)} UTC"
    if accounts is not None:
        facts["Accounts until"] = f"{job_words.moment(accounts.until)} UTC"
    pairs = [tag("div", tag("dt", name), tag("dd", fact)) for name, fact in facts.items()]
    told = (
        "A node counts from the first time that its agent was seen to the last. "
        "Prices are those of the plan. Made by Spotwright."
    )
    return tag("footer", tag("dl", *pairs, class_="facts"), tag("p", told))
