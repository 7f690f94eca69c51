"""A plan as one self-contained HTML page: no script, no font and no picture from outside."""

import math
from collections.abc import Sequence

from spotwright.adapters.report import sections, words
from spotwright.adapters.report.charts import (
    SMALL,
    WIDE,
    CostTime,
    RivalMark,
    cost_time_chart,
    frontier_icon,
    mark_icon,
    plan_icon,
)
from spotwright.adapters.report.document import document
from spotwright.adapters.report.markup import Html, items, joined, table, tag
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Plan, PlanStatus
from spotwright.domain.prediction import Interval
from spotwright.domain.questions import Rival


def render_report(job: JobSpec, plan: Plan, rivals: Sequence[Rival]) -> str:
    """Return the page that shows a plan to those who decide."""
    body = tag(
        "main",
        sections.summary(job, plan),
        sections.fleet(plan.prediction),
        sections.why(plan),
        _cost_against_time(job, plan, rivals),
        sections.steps(plan.prediction),
        sections.risk(job, plan),
        sections.footer(job, plan),
    )
    return document(f"{job.name}: training plan", body)


def _cost_against_time(job: JobSpec, plan: Plan, rivals: Sequence[Rival]) -> Html:
    data = _chart_data(job, plan, rivals)
    charts = [cost_time_chart(data, picture) for picture in (WIDE, SMALL)]
    parts = [tag("figure", *charts, items(list(_legend(data)), "key"))]
    if rivals:
        parts.append(_rival_table(plan, rivals))
    if plan.frontier:
        parts.append(tag("details", tag("summary", "The frontier as a table"), _frontier(plan)))
    return sections.section("Cost against time", *parts)


def _chart_data(job: JobSpec, plan: Plan, rivals: Sequence[Rival]) -> CostTime:
    """Return what can be drawn: a rival that never ends has no place in the chart."""
    marks = [
        RivalMark(name=r.name, duration_s=r.duration_s, cost_usd=r.cost_usd,
                  is_hollow=not r.meets_goal, shape=i)
        for i, r in enumerate(rivals)
        if math.isfinite(r.duration_s) and math.isfinite(r.cost_usd)
    ]  # fmt: skip
    told = plan.prediction.cost_usd
    low, high = (told.low, told.high) if told else (plan.cost_usd, plan.cost_usd)
    mid = plan.cost_usd
    return CostTime(
        duration_s=plan.prediction.duration_s,
        cost_usd=Interval(min(low, mid), mid, max(high, mid)),
        frontier=tuple((f.prediction.duration_s.mid, f.cost_usd) for f in plan.frontier),
        rivals=tuple(marks),
        deadline_s=job.goal.deadline_s,
        budget_usd=job.goal.budget_usd,
    )


def _legend(data: CostTime) -> list[Html]:
    entries = [joined([plan_icon(), "this plan; the bars are its 90 % intervals"])]
    if data.frontier:
        entries.append(joined([frontier_icon(), "the cheapest fleet for each time"]))
    for is_hollow, text in ((False, "meets the goal"), (True, "misses the goal")):
        first = next((r for r in data.rivals if r.is_hollow is is_hollow), None)
        if first:
            icon = mark_icon(first.shape, is_hollow=is_hollow)
            entries.append(joined([icon, f"a rival that {text}"]))
    return entries


def _rival_table(plan: Plan, rivals: Sequence[Rival]) -> Html:
    own = [joined([plan_icon(), tag("b", "this plan")]), words.usd(plan.cost_usd), "",
           words.duration(plan.prediction.duration_s.mid),
           _yes_or_no(plan.status is not PlanStatus.INFEASIBLE), ""]  # fmt: skip
    rows = [
        [
            joined([mark_icon(i, is_hollow=not rival.meets_goal), rival.name]),
            words.usd(rival.cost_usd),
            words.against(plan.cost_usd, rival.cost_usd),
            words.duration(rival.duration_s),
            _yes_or_no(rival.meets_goal),
            rival.note,
        ]
        for i, rival in enumerate(rivals)
    ]
    head = ["Planner", "Cost>", "Against this plan>", "Time>", "Meets the goal", "Note"]
    return table("What other planners would rent", head, [own, *rows])


def _yes_or_no(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _frontier(plan: Plan) -> Html:
    rows = [
        [
            words.duration(point.prediction.duration_s.mid),
            words.usd(point.cost_usd),
            words.floored_usd(point.lower_bound_usd),
            words.fleet_text(point.prediction),
        ]
        for point in plan.frontier
    ]
    head = ["Time>", "Cost>", "Proved floor>", "Fleet"]
    return table("The cheapest fleet for each time", head, rows)
