"""Jobs, their events and reports as messages, and back."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from spotwright.domain.job import Target, TargetKind
from spotwright.domain.job_run import Event, JobRun, JobState, Progress
from spotwright.domain.planned_run import PlannedRun
from spotwright.usecases.job_report import JobReport, ReportLine
from spotwright.v1 import job_pb2, planner_pb2

_STATES = {
    JobState.PENDING: job_pb2.JOB_STATE_PENDING,
    JobState.RUNNING: job_pb2.JOB_STATE_RUNNING,
    JobState.SUCCEEDED: job_pb2.JOB_STATE_SUCCEEDED,
    JobState.STOPPED: job_pb2.JOB_STATE_STOPPED,
}
_STATES_BACK: dict[int, JobState] = {number: state for state, number in _STATES.items()}
_TARGET_KINDS = {
    planner_pb2.TARGET_KIND_LOSS: TargetKind.LOSS,
    planner_pb2.TARGET_KIND_SAMPLES: TargetKind.SAMPLES,
    planner_pb2.TARGET_KIND_STEPS: TargetKind.STEPS,
    planner_pb2.TARGET_KIND_EPOCHS: TargetKind.EPOCHS,
    planner_pb2.TARGET_KIND_TOKENS: TargetKind.TOKENS,
}


def state_to_proto(state: JobState) -> job_pb2.JobState:
    """Return a state as it is on the wire."""
    return _STATES[state]


def state_from_proto(number: int) -> JobState | None:
    """Return the state of a number, or None for one that nobody knows."""
    return _STATES_BACK.get(number)


def job_to_proto(job: JobRun) -> job_pb2.Job:
    """Return a job as a message."""
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
    )


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
    return job_pb2.GetJobReportResponse(job=job_to_proto(report.job), lines=lines)


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
    return JobReport(job=job_from_proto(report.job), lines=lines)


def read_planned_run(document: bytes) -> PlannedRun:
    """Return what a plan promises, from the document that it is kept as."""
    plan = planner_pb2.Plan.FromString(document)
    prediction = plan.prediction
    kind = _TARGET_KINDS.get(plan.target.kind)
    return PlannedRun(
        target=None if kind is None else Target(kind=kind, value=plan.target.value),
        steps_to_goal=prediction.steps_to_goal,
        samples_to_goal=prediction.steps_to_goal * prediction.weighted_batch,
        duration_s=prediction.duration_s.mid,
        cost_usd=plan.cost_usd,
        rent_usd_per_hour=_rent_usd_per_hour(prediction.fleet),
        samples_per_s=prediction.samples_per_s,
        step_s=_mean_step_s(prediction),
        deadline_s=plan.deadline_s if plan.HasField("deadline_s") else None,
    )


def _rent_usd_per_hour(fleet: planner_pb2.Fleet) -> float | None:
    if fleet.HasField("functions") or not all(node.HasField("offer") for node in fleet.nodes):
        return None
    return sum(node.node_count * node.offer.price_usd_per_hour for node in fleet.nodes)


def _mean_step_s(prediction: planner_pb2.Prediction) -> float | None:
    """Return the mean over steps: a fast worker makes more of them than a slow one."""
    workers = [(_worker_count(group), group.step_s) for group in prediction.groups]
    steps_per_s = sum(count / step_s for count, step_s in workers if step_s > 0)
    return sum(count for count, _ in workers) / steps_per_s if steps_per_s else None


def _worker_count(group: planner_pb2.GroupPrediction) -> float:
    nodes = group.group
    return nodes.node_count * max(1.0, nodes.gpus_per_node) if group.HasField("group") else 1.0


def _timestamp(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


def _datetime(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)
