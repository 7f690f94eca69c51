"""Jobs and their events in the database."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from spotwright.adapters.store.job_course import course_document, course_of
from spotwright.adapters.store.plans import comes_after
from spotwright.adapters.store.requests import claim_request
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import events, jobs, leases
from spotwright.domain.errors import NotFoundError
from spotwright.domain.job_run import Event, JobRun, JobState, NewEvent, Progress
from spotwright.usecases.store_ports import Lease, PageStart


class SqlJobs(StorePart):
    """Jobs and their logs of events."""

    def add_job(
        self, job: JobRun, new_events: Sequence[NewEvent], *, request_id: str = ""
    ) -> JobRun:
        """Keep a job with its first events; where this request made one before, return that one."""
        with self._database.writing() as connection:
            before = claim_request(
                self._database, connection, kind="job", request_id=request_id, target_id=job.job_id
            )
            if before is None:
                keep = self._database.insert(jobs).on_conflict_do_nothing().returning(jobs.c.name)
                values = _values(job) | {"last_event_sequence": 0}
                if connection.execute(keep, values).first() is not None:
                    append_events(connection, job.job_id, new_events)
            return _job(_row(connection, before or job.job_id))

    def job(self, job_id: str) -> JobRun:
        """Return a job, or raise NotFoundError."""
        with self._database.reading() as connection:
            return _job(_row(connection, job_id))

    def jobs(
        self, *, states: Collection[JobState] = (), after: PageStart | None = None, limit: int
    ) -> Sequence[JobRun]:
        """Return jobs, newest first, ties by job_id; no states: all of them."""
        query = select(jobs).order_by(jobs.c.create_time.desc(), jobs.c.job_id).limit(limit)
        if states:
            query = query.where(jobs.c.state.in_([str(state) for state in states]))
        if after is not None:
            query = query.where(comes_after(jobs, "job_id", after))
        with self._database.reading() as connection:
            return [_job(row) for row in connection.execute(query)]

    def change_job(
        self,
        job_id: str,
        change: Callable[[JobRun], tuple[JobRun, Sequence[NewEvent]]],
        *,
        request_id: str = "",
        under: Lease | None = None,
    ) -> JobRun:
        """Replace a job by what `change` makes of it, and log events, in one step."""
        with self._database.writing() as connection:
            job = _job(_row(connection, job_id, lock=True))
            if under is not None and not self._is_held(connection, under):
                return job
            done = claim_request(
                self._database,
                connection,
                kind=f"change of job {job_id}",
                request_id=request_id,
                target_id=job_id,
            )
            if done is not None:
                return job
            changed, new_events = change(job)
            connection.execute(
                update(jobs).where(jobs.c.job_id == job_id).values(**_values(changed))
            )
            append_events(connection, job_id, new_events)
            return changed

    def _is_held(self, connection: Connection, lease: Lease) -> bool:
        held = select(leases.c.name).where(
            leases.c.name == lease.name,
            leases.c.owner == lease.owner,
            leases.c.expire_unix_s > self._database.now_unix_s,
        )
        return connection.execute(held).first() is not None

    def events(self, job_id: str, *, after_sequence: int = 0, limit: int) -> Sequence[Event]:
        """Return a job's events, oldest first."""
        query = (
            select(events)
            .where(events.c.job_id == job_id, events.c.sequence > after_sequence)
            .order_by(events.c.sequence)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_event(row) for row in connection.execute(query)]


def append_events(connection: Connection, job_id: str, new_events: Iterable[NewEvent]) -> bool:
    """Log events of a job without a gap; False where there is no such job."""
    taking = list(new_events)
    last = connection.execute(  # the row stays locked, so nobody takes the same numbers
        update(jobs)
        .where(jobs.c.job_id == job_id)
        .values(last_event_sequence=jobs.c.last_event_sequence + len(taking))
        .returning(jobs.c.last_event_sequence)
    ).scalar()
    if last is None:
        return False
    rows = [
        {
            "job_id": job_id,
            "sequence": last - len(taking) + 1 + i,
            "time": new.time,
            "kind": new.kind,
            "text": new.text,
            "facts": json.dumps(dict(new.facts), sort_keys=True),
        }
        for i, new in enumerate(taking)
    ]
    if rows:
        connection.execute(insert(events), rows)
    return True


def _row(connection: Connection, job_id: str, *, lock: bool = False) -> Row[Any]:
    query = select(jobs).where(jobs.c.job_id == job_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NotFoundError("job", job_id)
    return row


def _values(job: JobRun) -> dict[str, Any]:
    values = asdict(job)
    progress = values.pop("progress")
    values["course"] = course_document(job.course)
    return values | {f"progress_{name}": value for name, value in progress.items()}


def _job(row: Row[Any]) -> JobRun:
    values = row._asdict()
    del values["last_event_sequence"]
    progress = Progress(
        samples=values.pop("progress_samples"),
        steps=values.pop("progress_steps"),
        loss=values.pop("progress_loss"),
    )
    known = {
        "state": JobState(row.state),
        "progress": progress,
        "course": course_of(row.course),
    }
    return JobRun(**values | known)


def _event(row: Row[Any]) -> Event:
    return Event(
        time=row.time,
        kind=row.kind,
        text=row.text,
        facts=json.loads(row.facts),
        sequence=row.sequence,
    )
