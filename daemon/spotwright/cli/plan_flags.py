"""Flags that say how a job is planned, shared by every command that plans one."""

from dataclasses import dataclass
from typing import Annotated

import typer

from spotwright.cli.goal_flags import (
    parse_duration_or_zero,
    parse_inner_fraction,
    read_flag,
    read_goal_flags,
)
from spotwright.domain.plan import Objective
from spotwright.domain.questions import PlanQuestion
from spotwright.domain.units import parse_duration_s

_SWITCHING = "5m"

Deadline = Annotated[str | None, typer.Option(help="By when: 4h, 90 min, 2d.")]
TargetLoss = Annotated[
    float | None, typer.Option(help="Loss to reach; the job needs a convergence law.")
]
Budget = Annotated[str | None, typer.Option(help="At most this cost: $20.")]
Confidence = Annotated[
    str | None, typer.Option(help="How surely the deadline is met: 0.95 or 95%.")
]
PlannedFor = Annotated[
    Objective, typer.Option(help="Cheapest, fastest, or the trade-off between both.")
]
Gap = Annotated[str, typer.Option(help="Stop when proved this close to the best.")]
TimeLimit = Annotated[str, typer.Option(help="Stop with the best so far: 30s.")]
Existing = Annotated[
    str | None, typer.Option(help="Fleet that runs now; kept unless a change pays.")
]
Switching = Annotated[
    str | None,
    typer.Option(help="Time a new node is paid for before it trains.", show_default=_SWITCHING),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlags:
    """The flags as they were written."""

    deadline: str | None
    target_loss: float | None
    budget: str | None
    confidence: str | None
    objective: Objective
    gap: str
    time_limit: str
    existing: str | None
    switching: str | None

    def question(self, *, with_report: bool = False, without_reasons: bool = False) -> PlanQuestion:
        """Read them, or raise BadInputError that names one."""
        switching = self.switching or _SWITCHING
        return PlanQuestion(
            goal=read_goal_flags(
                deadline=self.deadline,
                budget=self.budget,
                confidence=self.confidence,
                target_loss=self.target_loss,
            ),
            objective=self.objective,
            gap_fraction=read_flag("--gap", parse_inner_fraction, self.gap),
            time_limit_s=read_flag("--time-limit", parse_duration_s, self.time_limit),
            existing_fleet=self.existing,
            switching_s=read_flag("--switching", parse_duration_or_zero, switching),
            with_frontier=with_report,
            with_rivals=with_report,
            without_reasons=without_reasons,
        )
