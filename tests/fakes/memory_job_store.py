"""A store of plans, jobs, leases and agents in memory, with a clock of its own for leases."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import fields
from datetime import datetime
from threading import RLock
from typing import TypeVar

from spotwright.domain.errors import NotFoundError
from spotwright.domain.job_run import Event, JobRun, JobState, NewEvent, PlanRecord
from spotwright.domain.telemetry import AgentRecord, RollupPart, StepSums
from spotwright.usecases.store_ports import Lease, PageStart
from tests.fakes.memory_ledger import MemoryLedger

T = TypeVar("T")


class MemoryJobStore(MemoryLedger):
    """Keeps what PlanStore, JobStore, LedgerStore and LeaseStore promise, while it lives."""

    def __init__(self, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._lock, self._clock_s = RLock(), clock_s
        self._plans: dict[str, PlanRecord] = {}
        self._jobs: dict[str, JobRun] = {}
        self._events: dict[str, list[Event]] = {}
        self._requests: dict[str, str] = {}
        self._leases: dict[str, tuple[str, float]] = {}
        self.agent_records: dict[str, AgentRecord] = {}
        self.rollup_parts: dict[str, list[RollupPart]] = {}
        self.step_sums: dict[str, list[StepSums]] = {}  # by job
        self.job_read_count = 0
        self.lease_round_count = 0  # how often leases were taken or renewed together

    def add_plan(self, plan: PlanRecord, *, request_id: str = "") -> PlanRecord:
        with self._lock:
            return self._plans.setdefault(plan.plan_id, plan)

    def plan_of_request(self, request_id: str) -> PlanRecord | None:
        return None

    def plan(self, plan_id: str) -> PlanRecord:
        with self._lock:
            return _found(self._plans, "plan", plan_id)

    def plans(
        self, *, job_name: str = "", after: PageStart | None = None, limit: int
    ) -> Sequence[PlanRecord]:
        return list(self._plans.values())[:limit]

    def add_job(self, job: JobRun, events: Sequence[NewEvent], *, request_id: str = "") -> JobRun:
        with self._lock:
            if request_id in self._requests:
                return self._jobs[self._requests[request_id]]
            self._jobs[job.job_id] = job
            self._log(job.job_id, events, request_id)
            return job

    def forget(self, job_id: str) -> None:
        """Lose a job, as no store should."""
        with self._lock:
            del self._jobs[job_id], self._events[job_id]

    def job(self, job_id: str) -> JobRun:
        with self._lock:
            self.job_read_count += 1
            return _found(self._jobs, "job", job_id)

    def jobs(
        self, *, states: Collection[JobState] = (), after: PageStart | None = None, limit: int
    ) -> Sequence[JobRun]:
        with self._lock:
            jobs = [job for job in self._jobs.values() if not states or job.state in states]
        jobs.sort(key=lambda job: job.job_id)
        jobs.sort(key=lambda job: job.create_time, reverse=True)
        if after is not None:
            jobs = [job for job in jobs if _comes_after(job, after)]
        return jobs[:limit]

    def change_job(
        self,
        job_id: str,
        change: Callable[[JobRun], tuple[JobRun, Sequence[NewEvent]]],
        *,
        request_id: str = "",
        under: Lease | None = None,
    ) -> JobRun:
        with self._lock:
            job = _found(self._jobs, "job", job_id)
            if request_id in self._requests:
                return job
            if under is not None and self.lease_owner(under.name) != under.owner:
                return job
            changed, events = change(job)
            self._jobs[job_id] = changed
            self._log(job_id, events, request_id)
            return changed

    def events(self, job_id: str, *, after_sequence: int = 0, limit: int) -> Sequence[Event]:
        with self._lock:
            return self._events.get(job_id, [])[after_sequence : after_sequence + limit]

    def acquire_lease(self, name: str, owner: str, *, ttl_s: float) -> bool:
        with self._lock:
            if self.lease_owner(name) not in (None, owner):
                return False
            self._leases[name] = owner, self._clock_s() + ttl_s
            return True

    def acquire_leases(self, names: Collection[str], owner: str, *, ttl_s: float) -> Set[str]:
        with self._lock:
            self.lease_round_count += 1
            return {name for name in names if self.acquire_lease(name, owner, ttl_s=ttl_s)}

    def release_leases(self, names: Collection[str], owner: str) -> None:
        for name in names:
            self.release_lease(name, owner)

    def release_lease(self, name: str, owner: str) -> None:
        with self._lock:
            if self.lease_owner(name) == owner:
                del self._leases[name]

    def lease_owner(self, name: str) -> str | None:
        with self._lock:
            owner, end_s = self._leases.get(name, (None, 0.0))
            return owner if end_s > self._clock_s() else None

    def agents(
        self,
        *,
        job_id: str = "",
        after_id: str = "",
        seen_since: datetime | None = None,
        limit: int,
    ) -> Sequence[AgentRecord]:
        records = sorted(self.agent_records.items())
        wanted = [
            record
            for agent_id, record in records
            if agent_id > after_id
            and job_id in ("", record.facts.job_id)
            and (seen_since is None or (record.last_seen and record.last_seen >= seen_since))
        ]
        return wanted[:limit]

    def agent(self, agent_id: str) -> AgentRecord:
        return _found(self.agent_records, "agent", agent_id)

    def rollups(
        self, agent_id: str, *, resolution_s: int, start_unix_s: int, end_unix_s: int, limit: int
    ) -> Sequence[RollupPart]:
        parts = self.rollup_parts.get(agent_id, [])
        return [part for part in parts if start_unix_s <= part.start_unix_s < end_unix_s][:limit]

    def job_steps(self, job_ids: Collection[str]) -> Mapping[str, Sequence[StepSums]]:
        return {name: self.step_sums[name] for name in job_ids if name in self.step_sums}

    def _log(self, job_id: str, events: Sequence[NewEvent], request_id: str) -> None:
        log = self._events.setdefault(job_id, [])
        for event in events:
            facts = {field.name: getattr(event, field.name) for field in fields(event)}
            log.append(Event(sequence=len(log) + 1, **facts))
        if request_id:
            self._requests[request_id] = job_id


def _found(kept: dict[str, T], kind: str, name: str) -> T:
    if name not in kept:
        raise NotFoundError(kind, name)
    return kept[name]


def _comes_after(job: JobRun, start: PageStart) -> bool:
    if job.create_time == start.create_time:
        return job.job_id > start.last_id
    return job.create_time < start.create_time
