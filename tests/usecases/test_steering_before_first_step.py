"""A fleet that is rented is paid and steered, though training has not made a step."""

from datetime import timedelta
from pathlib import Path

from spotwright.domain.job_run import JobState, Progress, Steer
from spotwright.usecases.report_progress import ProgressLog
from spotwright.usecases.steering_notes import notes_of
from tests.usecases.example_job_run import after
from tests.usecases.steered_cluster import DEADLINE_S, JOB, SteeredCluster
from tests.usecases.steered_story import folder, play

__all__ = ["folder"]  # a fixture, used by its name


def never_came(cluster: SteeredCluster, *numbers: int) -> None:
    for number in numbers:
        cluster.change(f"agent-{number}", session_id="", last_seen=None)


async def two_of_three(cluster: SteeredCluster) -> None:
    """Have a node not come."""
    cluster.not_begun()
    never_came(cluster, 2)
    await cluster.let_pass(900, cluster.replica("a"))


def test_a_group_that_was_granted_too_few_nodes_to_begin_gets_another_fleet(folder: Path) -> None:
    cluster = play(SteeredCluster(folder), two_of_three)

    job = cluster.store.job(JOB)
    assert job.state is JobState.PENDING
    short = cluster.events("short-grant")[0]
    assert timedelta(minutes=5) <= short.time - after(0) <= timedelta(minutes=6)
    replanned = cluster.events("replanned")[0]
    assert "short-grant" in replanned.facts["triggers"]
    assert cluster.planned.of(replanned.facts["plan_id"]).workers != {cluster.pool: 3}
    # The time until the first step does not count for the deadline.
    assert cluster.planned.of(replanned.facts["plan_id"]).deadline_s == DEADLINE_S


def test_what_is_rented_is_paid_from_the_first_host_on(folder: Path) -> None:
    async def comes_late(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        cluster.not_begun()
        never_came(cluster, 0, 1, 2)
        await cluster.let_pass(600, replica)
        assert not cluster.store.job(JOB).course.spent_usd
        for number in range(3):
            cluster.change(f"agent-{number}", session_id="session")
        await cluster.let_pass(600, replica)
        spent_usd = cluster.store.job(JOB).course.spent_usd
        rent = cluster.planned.of("plan-1").rent_usd_per_hour
        assert spent_usd is not None
        assert rent is not None
        assert 500 < spent_usd / rent * 3600 <= 600  # written once a minute

    play(SteeredCluster(folder, steer=Steer.ANNOUNCE), comes_late)


def test_nothing_falls_short_of_a_fleet_that_nobody_has_rented_yet(folder: Path) -> None:
    async def nobody_yet(cluster: SteeredCluster) -> None:
        cluster.not_begun()
        never_came(cluster, 0, 1, 2)
        await cluster.let_pass(3600, cluster.replica("a"))

    cluster = play(SteeredCluster(folder, steer=Steer.ANNOUNCE), nobody_yet)

    assert {event.kind for event in cluster.store.events(JOB, limit=100)} == {"controller-changed"}


def test_a_fleet_of_which_no_node_came_is_short_since_it_was_applied(folder: Path) -> None:
    async def none_came(cluster: SteeredCluster) -> None:
        cluster.not_begun()
        never_came(cluster, 0, 1, 2)
        await cluster.let_pass(600, cluster.replica("a"))

    cluster = play(SteeredCluster(folder), none_came)

    assert cluster.events("short-grant")
    assert cluster.store.job(JOB).plan_id != "plan-1"
    assert cluster.store.job(JOB).course.spent_usd == 0.0


def test_a_notice_before_the_first_step_is_passed_on_and_decided_about(folder: Path) -> None:
    async def noticed(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        cluster.not_begun()
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")
        await cluster.let_pass(10, replica)

    cluster = play(SteeredCluster(folder), noticed)

    assert len(cluster.told.saved) == 1
    assert cluster.events("replanned")[0].facts["triggers"] == "interruption-notice"


def test_waiting_for_the_first_step_is_neither_drift_nor_a_risk(folder: Path) -> None:
    async def waits(cluster: SteeredCluster) -> None:
        cluster.not_begun()
        await cluster.let_pass(3 * 3600, cluster.replica("a"))
        for _ in range(30):  # days, in which a look finds nothing new
            cluster.now_s += 8640.0
            await cluster.let_pass(5, cluster.replica("a"))

    kinds = {e.kind for e in play(SteeredCluster(folder), waits).store.events(JOB, limit=1000)}

    assert not kinds & {"drift", "deadline-at-risk"}


def test_time_counts_from_the_first_step_once_there_is_one(folder: Path) -> None:
    async def begins(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        cluster.not_begun()
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")  # its pool cools down for 10 min
        await cluster.let_pass(60, replica)
        cools_until = _cooling_until(cluster)
        log = ProgressLog(cluster.store, cluster.planned)
        log.report(JOB, Progress(steps=1.0), request_id="", now=after(cluster.now_s))
        await cluster.let_pass(65, replica)
        job = cluster.store.job(JOB)
        assert job.start_time == after(120)
        assert _cooling_until(cluster) == cools_until

    play(SteeredCluster(folder), begins)


def _cooling_until(cluster: SteeredCluster) -> float:
    """Return until when the pool cools down, in seconds since 1970."""
    notes = notes_of(cluster.store.job(JOB).course.notes)
    assert notes.since_unix_s is not None
    return notes.since_unix_s + notes.memory.cooling[cluster.pool]
