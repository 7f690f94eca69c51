"""The course of a job as a document in the database, and back."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from spotwright.domain.job_run import Forecast, JobCourse, Progress, Steer
from spotwright.domain.prediction import Interval


def course_document(course: JobCourse) -> str:
    """Return what is kept."""
    values = asdict(course)
    until = course.spent_until
    values["spent_until"] = None if until is None else until.isoformat()
    return json.dumps(values)


def course_of(document: str | None) -> JobCourse:
    """Read it back; a job from before there were courses has a new one."""
    if document is None:
        return JobCourse()
    values = json.loads(document)
    until = values["spent_until"]
    return JobCourse(
        **values
        | {
            "steer": Steer(values["steer"]),
            "begun": Progress(**values["begun"]),
            "spent_until": None if until is None else datetime.fromisoformat(until),
            "forecast": _forecast(values["forecast"]),
        }
    )


def _forecast(values: dict[str, Any] | None) -> Forecast | None:
    if values is None:
        return None
    cost_usd = values["cost_usd"]
    return Forecast(
        duration_s=Interval(**values["duration_s"]),
        cost_usd=None if cost_usd is None else Interval(**cost_usd),
    )
