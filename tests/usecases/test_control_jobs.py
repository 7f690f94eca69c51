import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.job_run import Event, JobRun, JobState
from spotwright.usecases.control_jobs import ControlTimes, JobControl
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.stop_job import stop_job
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_job_run import after, agent_record, job_run, plan_record, planned_run

TIMES = ControlTimes(period_s=5.0, lease_ttl_s=15.0)


class Cluster:
    """Replicas on one store, and a clock for all."""

    def __init__(self, *, job_count: int = 1) -> None:
        self.now_s = 0.0
        self.store = MemoryJobStore(clock_s=lambda: self.now_s)
        self.store.add_plan(plan_record())
        for i in range(job_count):
            self.store.add_job(job_run(f"job-{i}", state=JobState.RUNNING), [])
        self.planned = PlannedRuns(self.store, lambda _: planned_run(deadline_s=100.0))

    def replica(self, name: str) -> JobControl:
        return JobControl(
            self.store,
            self.planned,
            replica=name,
            clock=lambda: after(self.now_s),
            times=TIMES,
        )

    def let_pass(self, seconds: float, *replicas: JobControl) -> None:
        for _ in range(int(seconds / TIMES.period_s)):
            self.now_s += TIMES.period_s
            for replica in replicas:
                replica.make_round()

    def told(self, kind: str, job_id: str = "job-0") -> list[dict[str, str]]:
        events = self.store.events(job_id, limit=1000)
        return [dict(event.facts) for event in events if event.kind == kind]


def test_each_job_has_one_controller_among_many_replicas() -> None:
    cluster = Cluster(job_count=7)
    replicas = [cluster.replica(name) for name in ("a", "b", "c")]
    cluster.let_pass(60, *replicas)

    owners = Counter(job for replica in replicas for job in replica.controlled_jobs)
    assert owners == Counter({f"job-{i}": 1 for i in range(7)})
    assert all(len(cluster.told("controller-changed", f"job-{i}")) == 1 for i in range(7))
    assert {job.controller for job in cluster.store.jobs(limit=9)} <= {"a", "b", "c"}


def test_another_replica_takes_over_when_one_dies_within_the_lease_and_a_period() -> None:
    cluster = Cluster()
    dies, stays = cluster.replica("a"), cluster.replica("b")
    cluster.let_pass(30, dies, stays)
    cluster.let_pass(TIMES.lease_ttl_s - TIMES.period_s, stays)
    assert not stays.controlled_jobs

    cluster.let_pass(2 * TIMES.period_s, stays)

    assert cluster.store.job("job-0").controller == "b"
    assert cluster.told("controller-changed") == [{"from": "", "to": "a"}, {"from": "a", "to": "b"}]


def test_a_replica_that_stops_in_good_order_hands_over_at_once() -> None:
    cluster = Cluster()
    stops, stays = cluster.replica("a"), cluster.replica("b")
    cluster.let_pass(5, stops, stays)

    stops.release()
    cluster.let_pass(5, stays)

    assert cluster.store.job("job-0").controller == "b"
    assert not stops.controlled_jobs
    assert cluster.told("controller-changed")[-1] == {"from": "a", "to": "b"}


def test_a_replica_that_restarts_goes_on_with_its_jobs_and_logs_nothing() -> None:
    cluster = Cluster()
    cluster.let_pass(5, cluster.replica("a"))
    again = cluster.replica("a")
    cluster.let_pass(20, again)

    assert again.controlled_jobs == {"job-0"}
    assert len(cluster.told("controller-changed")) == 1


def test_a_replica_that_slept_through_its_lease_logs_nothing_more() -> None:
    cluster = Cluster()
    sleeps, stays = cluster.replica("a"), cluster.replica("b")
    cluster.let_pass(5, sleeps)
    cluster.let_pass(30, stays)
    cluster.let_pass(90, sleeps, stays)

    assert not sleeps.controlled_jobs
    assert stays.controlled_jobs == {"job-0"}
    assert len(cluster.told("deadline-passed")) == 1


def test_what_was_noticed_before_a_failover_is_not_logged_again() -> None:
    cluster = Cluster()
    cluster.store.agent_records["x"] = agent_record("x", job_id="job-0", last_seen=after(0))
    cluster.let_pass(120, cluster.replica("a"))
    cluster.let_pass(60, cluster.replica("b"))

    assert cluster.store.job("job-0").controller == "b"
    assert len(cluster.told("deadline-passed")) == len(cluster.told("agent-silent")) == 1
    cluster.store.agent_records["x"] = agent_record("x", job_id="job-0", last_seen=after(180))
    cluster.let_pass(20, cluster.replica("c"))
    assert cluster.told("agent-back") == [{"agent_id": "x"}]


def test_a_job_that_ended_is_let_go_and_its_lease_too() -> None:
    cluster = Cluster()
    replica = cluster.replica("a")
    cluster.let_pass(5, replica)
    stop_job("job-0", cluster.store, reason="", request_id="", who="ada", now=after(6))

    cluster.let_pass(5, replica)

    assert not replica.controlled_jobs
    assert cluster.store.lease_owner("job/job-0") is None
    assert cluster.store.job("job-0").controller == ""


def test_more_jobs_and_agents_than_a_page_are_all_followed() -> None:
    cluster = Cluster(job_count=1_001)
    for i in range(1_001):
        agent_id = f"agent-{i:04}"
        cluster.store.agent_records[agent_id] = agent_record(agent_id, job_id=f"job-{i}")
    replica = cluster.replica("a")
    while len(replica.controlled_jobs) < 1_001:
        replica.make_round()
    cluster.let_pass(40, replica)

    assert all(cluster.told("agent-silent", f"job-{i}") for i in range(1_001))


def test_a_job_that_cannot_be_followed_keeps_no_other_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster(job_count=3)
    cluster.store.add_job(replace(job_run("bad", state=JobState.RUNNING), plan_id="gone"), [])
    cluster.let_pass(120, cluster.replica("a"))

    assert all(cluster.told("deadline-passed", f"job-{i}") for i in range(3))
    assert "job bad cannot be followed" in caplog.text


def test_a_job_that_names_another_controller_than_the_owner_of_its_lease_is_put_right() -> None:
    cluster = Cluster()
    replica = cluster.replica("a")
    cluster.let_pass(5, replica)
    cluster.store.change_job("job-0", lambda job: (replace(job, controller="b"), ()))

    cluster.let_pass(5, replica)

    assert cluster.store.job("job-0").controller == "a"


def test_a_replica_held_up_until_its_lease_ran_out_takes_nothing() -> None:
    cluster = Cluster()
    slow, quick = cluster.replica("slow"), cluster.replica("quick")
    read_events = cluster.store.events

    def held_up(*asked: Any, **how: Any) -> Sequence[Event]:
        """Let the lease run out while the log is read, and the other one take the job."""
        cluster.store.events = read_events  # type: ignore[method-assign]
        cluster.now_s += TIMES.lease_ttl_s + 1
        quick.make_round()
        return read_events(*asked, **how)

    cluster.store.events = held_up  # type: ignore[method-assign]
    slow.make_round()

    assert slow.controlled_jobs == frozenset()
    assert quick.controlled_jobs == {"job-0"}
    assert cluster.store.job("job-0").controller == "quick"
    assert [facts["to"] for facts in cluster.told("controller-changed")] == ["quick"]


def test_two_replicas_that_were_given_one_name_do_not_share_a_job() -> None:
    cluster = Cluster()
    one, other = cluster.replica("a"), cluster.replica("a")
    cluster.let_pass(30, one, other)

    assert len(one.controlled_jobs) + len(other.controlled_jobs) == 1


class FailingStore(MemoryJobStore):
    """A store that cannot be reached at first."""

    failure_count = 2

    def jobs(self, **asked: object) -> list[JobRun]:
        if self.failure_count:
            self.failure_count -= 1
            raise StoreUnavailableError("the store is away")
        return list(super().jobs(limit=1000))


def test_a_store_that_comes_back_is_controlled_again(caplog: pytest.LogCaptureFixture) -> None:
    store = FailingStore()
    store.add_plan(plan_record())
    store.add_job(replace(job_run("job-0"), state=JobState.RUNNING), [])

    async def controlled() -> list[str]:
        changed: asyncio.Queue[str] = asyncio.Queue()
        stopping = asyncio.Event()
        control = JobControl(
            store,
            PlannedRuns(store, lambda _: planned_run()),
            replica="a",
            clock=lambda: after(0),
            changed=changed.put_nowait,
            times=ControlTimes(period_s=0.01),
        )
        running = asyncio.create_task(control.run(stopping))
        found = await asyncio.wait_for(changed.get(), 10)
        controllers = [found, store.job("job-0").controller]
        stopping.set()
        await running
        return controllers

    assert asyncio.run(controlled()) == ["job-0", "a"]
    assert store.lease_owner("job/job-0") is None
    assert caplog.text.count("the store is away") == 2
