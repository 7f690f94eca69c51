"""JSON Schema of what `spotwright plan --json` prints."""

from collections.abc import Mapping
from typing import Any

from spotwright.domain.fleet import Role
from spotwright.domain.offer import Market
from spotwright.domain.plan import Objective, PlanStatus
from spotwright.domain.workload import Strategy

Schema = dict[str, Any]


def _cell(kind: str | list[str], description: str, **rules: Any) -> Schema:
    return {"type": kind, "description": description} | rules


def _figure(description: str) -> Schema:
    return _cell("number", description, minimum=0)


def _maybe(description: str) -> Schema:
    return _cell(["number", "null"], description, minimum=0)


def _chance(description: str) -> Schema:
    return _cell(["number", "null"], description, minimum=0, maximum=1)


def _one_of(values: Any, description: str) -> Schema:
    return _cell("string", description, enum=[str(value) for value in values])


def _text(description: str) -> Schema:
    return _cell("string", description)


def _list(items: Schema, description: str, **rules: Any) -> Schema:
    return _cell("array", description, items=items) | rules


def _object(properties: Mapping[str, Schema], **rules: Any) -> Schema:
    return {"type": "object", "required": [*properties], "properties": dict(properties)} | rules


_FLEET = _list(
    _object(
        {
            "role": _one_of(Role, "what these nodes do"),
            "instance_type": _text("its name; lambda:MB for functions"),
            "zone": _cell(["string", "null"], "zone id; null for functions"),
            "market": _one_of(Market, "how it is paid for"),
            "node_count": _cell("integer", "nodes, or functions", minimum=1),
            "price_usd_per_hour": _maybe("of one node; null for functions, billed by use"),
        }
    ),
    "what to rent",
    minItems=1,
)
_POOL_CHANGE = _object(
    {
        "role": _one_of(Role, "what these nodes do"),
        "instance_type": _text("its name"),
        "zone": _text("zone id"),
        "market": _one_of(Market, "how it is paid for"),
        "running_count": _cell("integer", "nodes that run; more than planned: stop", minimum=0),
        "planned_count": _cell("integer", "nodes that should run", minimum=0),
    }
)
_SAVING = _object(
    {
        "limit": _text("the job file's name of the limit, such as goal.deadline"),
        "change": _text("by how much it would be relaxed"),
        "saves_usd": _figure("what that would save"),
    }
)
_ALTERNATIVE = _object(
    {
        "label": _text("in what it differs, such as all on-demand"),
        "fleet": _FLEET,
        "cost_usd": _maybe("expected cost"),
        "duration_s": _figure("expected seconds to the goal"),
        "deadline_probability": _chance("of meeting the deadline; null without one"),
        "gives_up": _text("what choosing it would cost"),
    }
)
_FRONTIER_POINT = _object(
    {
        "deadline_s": _figure("the longest deadline for which nothing cheaper was found"),
        "cost_usd": _figure("expected cost"),
        "lower_bound_usd": _figure("no fleet that fast costs less"),
        "duration_s": _figure("expected seconds to the goal"),
        "fleet": _FLEET,
    }
)
_CHANGE = _object(
    {
        "limit": _text("the job file's name of the limit"),
        "now": _cell(["number", "null"], "its value; null where nothing limits"),
        "needed": _cell(["number", "null"], "the value nearest to it that some fleet can keep"),
        "proved": _cell("boolean", "less would not do; false: the search for less was ended"),
        "text": _text("the same in words"),
    }
)
_CATALOG_TIME = _cell("string", "when the oldest price used was observed", format="date-time")
_SOLVED = [PlanStatus.OPTIMAL, PlanStatus.FEASIBLE]

PLAN: Schema = _object(
    {
        "status": _one_of(_SOLVED, "optimal: proved within the gap; feasible: stopped before that"),
        "objective": _one_of(Objective, "what was made as small as possible"),
        "job": _text("name of the job"),
        "strategy": _one_of(Strategy, "how gradients are exchanged"),
        "cost_usd": _figure("expected cost, lost work and a change of fleet included"),
        "low_cost_usd": _figure("lower end of its 90 % interval"),
        "high_cost_usd": _figure("upper end of its 90 % interval"),
        "lower_bound_usd": _figure("no fleet that meets the goal costs less"),
        "lower_bound_s": _maybe("objective time: no fleet within the budget is faster; else null"),
        "gap_fraction": _cell(
            "number", "how much better the optimum could be", minimum=0, maximum=1
        ),
        "duration_s": _figure("expected seconds to the goal"),
        "low_duration_s": _figure("lower end of its 90 % interval"),
        "high_duration_s": _figure("upper end of its 90 % interval"),
        "duration_p95_s": _figure("95 of 100 runs end within"),
        "steps_to_goal": _figure("updates of the model"),
        "weighted_batch": _figure("samples of an update, on average"),
        "deadline_probability": _chance("simulated interruptions; null without a deadline"),
        "overall_deadline_probability": _chance("the same with the model's own error"),
        "uninterrupted_probability": _chance("that no spot node is taken away"),
        "fleet": _FLEET,
        "changes": _list(_POOL_CHANGE, "--existing: each pool that runs or is planned; else none"),
        "bottleneck": _text("the term of a step that takes most time"),
        "why": _list(_text("a reason"), "binding limits, the runner-up, the bottleneck"),
        "savings": _list(_SAVING, "what relaxed limits would save"),
        "alternatives": _list(_ALTERNATIVE, "fleets that differ in kind, cheapest first"),
        "frontier": _list(_FRONTIER_POINT, "objective pareto, or --report: fastest first"),
        "notes": _list(_text("a note"), "what was assumed"),
        "solve_s": _figure("seconds the planner took; all else is the same from run to run"),
        "catalog_time": _CATALOG_TIME,
    },
    title="Plan",
)
INFEASIBLE: Schema = _object(
    {
        "status": _one_of([PlanStatus.INFEASIBLE], "no fleet meets the goal"),
        "objective": _one_of(Objective, "what was asked for"),
        "job": _text("name of the job"),
        "infeasible": _object(
            {
                "proved": _cell("boolean", "false: none that was tried is sure enough, others may"),
                "limits": _list(_text("a limit"), "which limits clash"),
                "changes": _list(_CHANGE, "for each limit the least change that helps by itself"),
                "together": _list(_CHANGE, "where none does: changes that help all at once"),
            }
        ),
        "catalog_time": _CATALOG_TIME,
    },
    title="Infeasible",
)
PLAN_SCHEMA: Schema = {
    "title": "What `spotwright plan --json` prints",
    "oneOf": [PLAN, INFEASIBLE],
}
