"""Plans to draw: the examples that ship, and every extreme that a page must stand."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Alternative, FrontierPoint, Objective, Plan, PlanStatus, Saving
from spotwright.domain.prediction import Prediction
from spotwright.domain.questions import Rival
from spotwright.usecases.predict_fleet import predict_fleet
from tests.usecases.example_job import catalog

EXAMPLES = Path(__file__).parents[3] / "examples"
HOSTILE = "<script>alert(\"x\")</script> & 'quoted' </title></style>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    job: JobSpec
    plan: Plan
    rivals: Sequence[Rival] = ()


@cache
def job_of(example: str) -> JobSpec:
    return read_job_file(EXAMPLES / example).spec


@cache
def predicted(example: str, fleet: str) -> Prediction:
    return predict_fleet(job_of(example), fleet, catalog())


def plan_of(prediction: Prediction, **changes: Any) -> Plan:
    assert prediction.cost_usd is not None
    cost_usd = prediction.cost_usd.mid
    plain: dict[str, Any] = {
        "status": PlanStatus.OPTIMAL,
        "objective": Objective.COST,
        "prediction": prediction,
        "cost_usd": cost_usd,
        "lower_bound_usd": 0.9995 * cost_usd,
        "lower_bound_s": None,
        "deadline_probability": prediction.deadline_probability,
        "why": (),
        "savings": (),
        "alternatives": (),
        "frontier": (),
        "changes": (),
        "solve_s": 1.84,
        "catalog_time": datetime(2026, 1, 12, 14, 5, tzinfo=UTC),
    }
    return Plan(**plain | changes)


def frontier_of(example: str, fleets: Sequence[str]) -> tuple[FrontierPoint, ...]:
    """Return the fleets that none of the others beats, fastest first."""
    points: list[FrontierPoint] = []
    for prediction in sorted(
        (predicted(example, fleet) for fleet in fleets), key=lambda p: p.duration_s.mid
    ):
        assert prediction.cost_usd is not None
        usd = prediction.cost_usd.mid
        if not points or usd < points[-1].cost_usd:
            time_s = prediction.duration_s.mid
            points.append(
                FrontierPoint(
                    deadline_s=time_s, prediction=prediction, cost_usd=usd, lower_bound_usd=usd
                )
            )
    return tuple(points)


def rivals_around(plan: Plan, *factors: tuple[float, float]) -> list[Rival]:
    """Return rivals at multiples of the plan's time and cost; those that take longer miss."""
    names = ["autoscaler, one type", "on-demand only", "spotDNN", "Cynthia", "cheapest per hour",
             "fastest GPU", "SkyPilot", "hand-picked"]  # fmt: skip
    seconds = plan.prediction.duration_s.mid
    return [
        Rival(
            name=names[i % len(names)],
            cost_usd=plan.cost_usd * usd,
            duration_s=seconds * time,
            meets_goal=time <= 1.1,
            note="" if time <= 1.1 else "misses the deadline",
        )
        for i, (time, usd) in enumerate(factors)
    ]


def _job_with(**goal: Any) -> JobSpec:
    job = job_of("resnet50.yaml")
    return replace(job, goal=replace(job.goal, **goal))


def full() -> Case:
    """Return a plan with everything in it; four g4dn.12xlarge are all that may be rented."""
    job = _job_with(deadline_s=8 * 3600.0, budget_usd=105.0)
    more = [f"g4dn.12xlarge*4/spot + g4dn.metal*{n}/spot" for n in range(1, 6)]
    fewer = [f"g4dn.12xlarge*{n}/spot" for n in (2, 3, 4)]
    plan = plan_of(
        predict_fleet(job, more[0], catalog()),
        why=(
            "limits.max_count.g4dn.12xlarge binds: a fifth one would replace the dearer metal node",
            "the deadline binds: without the metal node the run takes 10.9 h",
            "the runner-up, 3 x g4dn.12xlarge + 2 x g4dn.metal, costs $6.32 more",
        ),
        savings=(
            Saving(limit="goal.deadline", change="3 h more", saves_usd=7.41),
            Saving(limit="limits.max_count.g4dn.12xlarge", change="2 more", saves_usd=5.05),
        ),
        alternatives=(
            Alternative(
                label="all on-demand",
                prediction=predict_fleet(job, "g4dn.12xlarge*4 + g4dn.metal", catalog()),
                cost_usd=179.53,
                gives_up="$104.10 more (+138 %)",
            ),
        ),
        frontier=frontier_of("resnet50.yaml", [*fewer, *more]),
    )
    around = [(1.04, 1.18), (0.62, 1.9), (0.98, 1.07), (1.45, 0.9), (1.9, 0.86), (0.8, 1.31)]
    return Case(job=job, plan=plan, rivals=rivals_around(plan, *around))


def bare() -> Case:
    """No deadline, no budget, no frontier, no rivals, no reasons and a single group."""
    job = _job_with(deadline_s=None)
    prediction = predict_fleet(job, "g4dn.12xlarge*2", catalog())
    return Case(job=job, plan=plan_of(replace(prediction, notes=())))


def serverless() -> Case:
    prediction = predicted("mobilenet-serverless.yaml", "lambda:2048*8")
    plan = plan_of(prediction, status=PlanStatus.FEASIBLE, why=("network is the bottleneck",))
    rivals = rivals_around(plan, (1.6, 0.7))
    return Case(job=job_of("mobilenet-serverless.yaml"), plan=plan, rivals=rivals)


def many_groups() -> Case:
    types = ["g4dn.xlarge", "g5.xlarge", "g6.xlarge", "g4dn.2xlarge", "g5.2xlarge", "g6.2xlarge",
             "g4dn.4xlarge", "g5.4xlarge", "g6.4xlarge", "g4dn.8xlarge", "g5.8xlarge",
             "g6.8xlarge"]  # fmt: skip
    prediction = predicted("wide-resnet-asp.yaml", " + ".join(f"{t}/spot" for t in types))
    plan = plan_of(prediction, objective=Objective.TIME, lower_bound_s=prediction.duration_s.mid)
    return Case(job=job_of("wide-resnet-asp.yaml"), plan=plan)


def hostile() -> Case:
    """Markup, and names longer than any line, wherever the user has a say."""
    case = full()
    long = f"{HOSTILE}{'an-endless-name' * 20}"
    prediction = replace(case.plan.prediction, notes=(long, HOSTILE))
    plan = replace(
        case.plan,
        prediction=prediction,
        why=(long,),
        savings=(Saving(limit=long, change=HOSTILE, saves_usd=1.0),),
        alternatives=tuple(
            replace(a, label=long, gives_up=HOSTILE) for a in case.plan.alternatives
        ),
    )
    rivals = [replace(r, name=f"{i} {long}", note=long) for i, r in enumerate(case.rivals)]
    return Case(job=replace(case.job, name=long), plan=plan, rivals=rivals)


def crowd() -> Case:
    """Twenty rivals at nearly the same point as the plan, some exactly there."""
    case = full()
    factors = [(1 + 0.004 * (i % 7), 1 + 0.003 * (i % 5)) for i in range(18)] + [(1, 1), (1, 1)]
    return Case(job=case.job, plan=case.plan, rivals=rivals_around(case.plan, *factors))


def far_apart() -> Case:
    """Rivals a thousand times as slow and as dear, one that never ends, and a far deadline."""
    case = full()
    rivals = rivals_around(case.plan, (0.01, 900), (35, 0.4), (1100, 0.02), (2, 3))
    endless = Rival(
        name="endless", cost_usd=math.inf, duration_s=math.inf, meets_goal=False, note="diverges"
    )
    return Case(job=_job_with(deadline_s=40 * 86400.0), plan=case.plan, rivals=[*rivals, endless])


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case for case in (full, bare, serverless, many_groups, hostile, crowd, far_apart)
}
