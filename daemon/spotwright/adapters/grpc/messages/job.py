"""Jobs, their events and reports as messages, and back."""

from dataclasses import asdict
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from spotwright.adapters.grpc.messages.accounting import accounts_from_proto, accounts_to_proto
from spotwright.adapters.grpc.messages.scalars import by_name
from spotwright.domain.job_run import (
    Event,
    Forecast,
    JobCourse,
    JobRun,
    JobState,
    Progress,
    Steer,
)
from spotwright.domain.live_term import LiveTerm
from spotwright.domain.prediction import Interval
from spotwright.usecases.job_report import JobReport, ReportLine
from spotwright.v1 import job_pb2, planner_pb2

_STATES = {
    JobState.PENDING: job_pb2.JOB_STATE_PENDING,
    JobState.RUNNING: job_pb2.JOB_STATE_RUNNING,
    JobState.SUCCEEDED: job_pb2.JOB_STATE_SUCCEEDED,
    JobState.STOPPED: job_pb2.JOB_STATE_STOPPED,
}
_STEER_MODES = {
    Steer.OFF: job_pb2.STEER_MODE_OFF,
    Steer.ANNOUNCE: job_pb2.STEER_MODE_ANNOUNCE,
    Steer.WRITE: job_pb2.STEER_MODE_WRITE,
    Steer.APPLY: job_pb2.STEER_MODE_APPLY,
}
_STEER_BACK: dict[int, Steer] = {number: steer for steer, number in _STEER_MODES.items()}
_STATES_BACK: dict[int, JobState] = {number: state for state, number in _STATES.items()}


def state_to_proto(state: JobState) -> job_pb2.JobState:
    """Return a state as it is on the wire."""
    return _STATES[state]


def state_from_proto(number: int) -> JobState | None:
    """Return the state of a number, or None for one that nobody knows."""
    return _STATES_BACK.get(number)


def steer_to_proto(steer: Steer) -> job_pb2.SteerMode:
    """Return what may be done about a fleet as it is on the wire."""
    return _STEER_MODES[steer]


def steer_from_proto(number: int) -> Steer | None:
    """Return what may be done about a fleet; None for a number that nobody knows."""
    return Steer.OFF if number == job_pb2.STEER_MODE_UNSPECIFIED else _STEER_BACK.get(number)


def job_to_proto(job: JobRun) -> job_pb2.Job:
    """Return a job as a message; what its controller remembers is nobody else's."""
    return job_pb2.Job(
        job_id=job.job_id,
        name=job.name,
        plan_id=job.plan_id,
        state=_STATES[job.state],
        create_time=_timestamp(job.create_time),
        update_time=_timestamp(job.update_time),
        start_time=_timestamp(job.start_time),
        end_time=_timestamp(job.end_time),
        progress=progress_to_proto(job.progress),
        progress_fraction=job.progress_fraction,
        controller=job.controller,
        steer_mode=_STEER_MODES[job.course.steer],
        first_plan_id=job.first_plan_id,
        spent_usd=job.course.spent_usd,
        forecast=_forecast_to_proto(job.course.forecast),
    )


def job_from_proto(job: job_pb2.Job) -> JobRun:
    """Return the job of a message."""
    return JobRun(
        job_id=job.job_id,
        name=job.name,
        plan_id=job.plan_id,
        state=_STATES_BACK[job.state],
        create_time=_datetime(job.create_time),
        update_time=_datetime(job.update_time),
        start_time=_datetime(job.start_time) if job.HasField("start_time") else None,
        end_time=_datetime(job.end_time) if job.HasField("end_time") else None,
        progress=progress_from_proto(job.progress),
        progress_fraction=job.progress_fraction if job.HasField("progress_fraction") else None,
        controller=job.controller,
        course=JobCourse(
            steer=steer_from_proto(job.steer_mode) or Steer.OFF,
            first_plan_id="" if job.first_plan_id == job.plan_id else job.first_plan_id,
            spent_usd=job.spent_usd if job.HasField("spent_usd") else None,
            forecast=_forecast_from_proto(job.forecast) if job.HasField("forecast") else None,
        ),
    )


def _forecast_to_proto(forecast: Forecast | None) -> job_pb2.Forecast | None:
    if forecast is None:
        return None
    cost_usd = forecast.cost_usd
    return job_pb2.Forecast(
        duration_s=planner_pb2.Interval(**asdict(forecast.duration_s)),
        cost_usd=None if cost_usd is None else planner_pb2.Interval(**asdict(cost_usd)),
    )


def _forecast_from_proto(message: job_pb2.Forecast) -> Forecast:
    cost_usd = _interval(message.cost_usd) if message.HasField("cost_usd") else None
    return Forecast(duration_s=_interval(message.duration_s), cost_usd=cost_usd)


def _interval(message: planner_pb2.Interval) -> Interval:
    return Interval(message.low, message.mid, message.high)


def progress_to_proto(progress: Progress) -> job_pb2.Progress:
    """Return progress as a message."""
    return job_pb2.Progress(samples=progress.samples, steps=progress.steps, loss=progress.loss)


def progress_from_proto(progress: job_pb2.Progress) -> Progress:
    """Return the progress of a message."""
    return Progress(
        samples=progress.samples if progress.HasField("samples") else None,
        steps=progress.steps if progress.HasField("steps") else None,
        loss=progress.loss if progress.HasField("loss") else None,
    )


def event_to_proto(event: Event) -> job_pb2.Event:
    """Return an event as a message."""
    return job_pb2.Event(
        sequence=event.sequence,
        event_time=_timestamp(event.time),
        kind=event.kind,
        text=event.text,
        facts=dict(event.facts),
    )


def event_from_proto(event: job_pb2.Event) -> Event:
    """Return the event of a message."""
    return Event(
        sequence=event.sequence,
        time=_datetime(event.event_time),
        kind=event.kind,
        text=event.text,
        facts=dict(event.facts),
    )


def report_to_proto(report: JobReport) -> job_pb2.GetJobReportResponse:
    """Return a report as a message."""
    lines = [
        job_pb2.ReportLine(figure=line.figure, planned=line.planned, measured=line.measured)
        for line in report.lines
    ]
    return job_pb2.GetJobReportResponse(
        job=job_to_proto(report.job),
        lines=lines,
        terms=[_term_to_proto(t) for t in report.terms],
        accounts=accounts_to_proto(report.accounts) if report.accounts else None,
    )


def report_from_proto(report: job_pb2.GetJobReportResponse) -> JobReport:
    """Return the report of a message."""
    lines = tuple(
        ReportLine(
            figure=line.figure,
            planned=line.planned if line.HasField("planned") else None,
            measured=line.measured if line.HasField("measured") else None,
        )
        for line in report.lines
    )
    return JobReport(
        job=job_from_proto(report.job),
        lines=lines,
        terms=tuple(LiveTerm(**by_name(term)) for term in report.terms),
        accounts=accounts_from_proto(report.accounts) if report.HasField("accounts") else None,
    )


def _term_to_proto(term: LiveTerm) -> job_pb2.LiveTerm:
    return job_pb2.LiveTerm(**asdict(term))


def _timestamp(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


def _datetime(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)
