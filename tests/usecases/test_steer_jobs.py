"""What becomes of a job whose nodes are taken away, and of the daemons that steer it."""

from dataclasses import replace
from pathlib import Path

import pytest

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.domain.errors import BusyError
from spotwright.domain.job_run import Progress, Steer
from spotwright.domain.offer import Pool
from spotwright.usecases.job_report import report_job
from spotwright.usecases.report_progress import ProgressLog
from tests.usecases.cloud_notice import heard
from tests.usecases.example_job import snapshot
from tests.usecases.example_job_run import after
from tests.usecases.steered_cluster import DEADLINE_S, JOB, Replica, SteeredCluster
from tests.usecases.steered_story import folder, lose_one, play

__all__ = ["folder"]  # a fixture, used by its name


def test_a_job_that_loses_a_node_goes_on_with_another_fleet_and_its_promise(folder: Path) -> None:
    cluster = play(SteeredCluster(folder), lose_one)

    job = cluster.store.job(JOB)
    (event,) = cluster.events("replanned")
    assert event.facts["plan_id"] == job.plan_id != job.first_plan_id == "plan-1"
    assert event.facts["triggers"] == "interruption-notice"
    assert cluster.planned.of(job.plan_id).workers != {cluster.pool: 3}
    rest = cluster.planned.of(job.plan_id)
    assert rest.deadline_s == pytest.approx(DEADLINE_S - 65, abs=6)
    assert job.course.forecast is not None
    assert job.course.spent_usd == pytest.approx(3 * 0.36 * 65 / 3600, rel=0.3)
    assert cluster.cloud.applied == ["variables of plan-1", f"variables of {job.plan_id}"]


def test_nothing_is_done_about_a_fleet_that_is_whole(folder: Path) -> None:
    async def nothing(cluster: SteeredCluster) -> None:
        await cluster.let_pass(600, cluster.replica("a"))

    cluster = play(SteeredCluster(folder), nothing)

    kinds = {event.kind for event in cluster.store.events(JOB, limit=1000)}
    assert kinds <= {"controller-changed", "apply-started", "applied", "checkpoint-advice"}
    assert len(cluster.cloud.applied) == 1


def test_the_share_that_is_done_goes_on_from_plan_to_plan(folder: Path) -> None:
    async def a_little_then_half_of_the_rest(cluster: SteeredCluster) -> None:
        log = ProgressLog(cluster.store, cluster.planned)
        log.report(JOB, Progress(steps=cluster.steps / 100), request_id="", now=after(0))
        await lose_one(cluster)
        job = cluster.store.job(JOB)
        rest = cluster.planned.of(job.plan_id).steps_to_goal
        done = Progress(steps=cluster.steps / 100 + rest / 2)
        assert log.report(JOB, done, request_id="", now=after(99)).progress_fraction == (
            pytest.approx(0.505)
        )

    cluster = play(SteeredCluster(folder), a_little_then_half_of_the_rest)

    assert cluster.store.job(JOB).course.begun_fraction == pytest.approx(0.01)


def test_training_is_told_to_save_at_once_on_all_hosts_of_a_synchronous_job(folder: Path) -> None:
    cluster = play(SteeredCluster(folder), lose_one)

    ((agents, seconds_left),) = cluster.told.saved
    assert agents == ("agent-0", "agent-1", "agent-2")
    assert seconds_left == pytest.approx(120, abs=6)
    first, second = cluster.told.intervals_s
    assert second < first / 1.2  # a loss was seen


def test_a_daemon_killed_while_it_decides_is_followed_by_one_that_decides_once(
    folder: Path,
) -> None:
    async def killed(cluster: SteeredCluster) -> None:
        dies, follows = cluster.replica("a"), cluster.replica("b")
        await cluster.let_pass(60, dies)
        dies.decider.held.clear()
        cluster.notice("agent-0")
        await cluster.let_pass(5, dies)
        assert len(dies.decider.asked) == 2
        await cluster.let_pass(30, follows)
        dies.decider.held.set()  # it was not dead after all: it must not change a thing
        await dies.steering.wait()
        await cluster.let_pass(30, follows)

    cluster = play(SteeredCluster(folder), killed)

    assert len(cluster.events("replanned")) == 1
    assert len(cluster.cloud.applied) == len({*cluster.cloud.applied}) == 2


def test_an_apply_that_a_dead_daemon_began_is_gone_on_with(folder: Path) -> None:
    async def killed(cluster: SteeredCluster) -> None:
        dies, follows = cluster.replica("a"), cluster.replica("b")
        dies.decider.held.clear()
        cluster.cloud.hangs = True
        await cluster.let_pass(5, dies)
        await cluster.let_pass(60, follows)
        cluster.cloud.released.set()  # it was not dead after all: it must not change a thing
        dies.decider.held.set()
        await dies.steering.wait()

    cluster = play(SteeredCluster(folder), killed)

    assert [event.facts["plan_id"] for event in cluster.events("apply-started")] == ["plan-1"]
    assert [event.facts["plan_id"] for event in cluster.events("apply-resumed")] == ["plan-1"]
    assert len(cluster.events("applied")) == 1
    assert {*cluster.cloud.applied} == {"variables of plan-1"}


def test_an_apply_that_fails_half_way_is_told_and_done_again_after_a_pause(folder: Path) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        cluster.cloud.failures_left = 2
        await cluster.let_pass(120, cluster.replica("a"))

    cluster = play(SteeredCluster(folder), failing)

    pauses = [event.facts["retry_in_s"] for event in cluster.events("apply-failed")]
    assert pauses == ["10", "20"]
    assert "half of it is there" in cluster.events("apply-failed")[0].text
    assert len(cluster.events("applied")) == 1
    assert cluster.cloud.applied == ["variables of plan-1"] * 3


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (KeyError("pools"), "KeyError: 'pools'"),
    ],
)
def test_an_apply_that_fails_as_nobody_foresaw_is_told_and_waits_like_any_other(
    folder: Path, failure: Exception, told: str
) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        cluster.cloud.failures_left, cluster.cloud.failure = 2, failure
        await cluster.let_pass(120, cluster.replica("a"))

    cluster = play(SteeredCluster(folder), failing)

    assert [event.facts["problem"] for event in cluster.events("apply-failed")] == [told, told]
    assert [event.facts["retry_in_s"] for event in cluster.events("apply-failed")] == ["10", "20"]
    assert len(cluster.events("apply-resumed")) == 2
    assert len(cluster.events("applied")) == 1


@pytest.mark.parametrize("failure", [BusyError("no process", retry_after_s=1), ValueError("odd")])
def test_that_nothing_can_be_decided_is_told_once_until_something_is(
    folder: Path, failure: Exception
) -> None:
    async def failing(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        await undecided(cluster, replica, "agent-0")
        pool = next(iter(cluster.planned.of(cluster.store.job(JOB).plan_id).workers))
        cluster.add_agent("new", pool=pool)
        await cluster.let_pass(60, replica)
        await undecided(cluster, replica, "new")

    async def undecided(cluster: SteeredCluster, replica: Replica, lost: str) -> None:
        replica.decider.failure = failure
        cluster.notice(lost)
        before = len(replica.decider.asked)
        await cluster.let_pass(60, replica)
        assert len(replica.decider.asked) > before + 2
        replica.decider.failure = None
        await cluster.let_pass(20, replica)

    cluster = play(SteeredCluster(folder), failing)

    problems = [event.facts["problem"] for event in cluster.events("decision-failed")]
    assert len(problems) == 2
    assert all(str(failure) in problem for problem in problems)
    assert cluster.events("replanned")
    assert [event.kind for event in cluster.told.posted].count("decision-failed") == 2


def test_of_two_replicas_one_decides(folder: Path) -> None:
    async def both(cluster: SteeredCluster) -> None:
        one, other = cluster.replica("a"), cluster.replica("b")
        await cluster.let_pass(60, one, other)
        cluster.notice("agent-0")
        await cluster.let_pass(30, one, other)

    cluster = play(SteeredCluster(folder), both)

    assert len(cluster.events("replanned")) == 1
    assert len(cluster.cloud.applied) == len({*cluster.cloud.applied}) == 2


def test_a_notice_that_is_taken_back_calls_for_no_further_change(folder: Path) -> None:
    async def withdrawn(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0")
        cluster.change("agent-0", notice=None)  # before anybody looked
        await cluster.let_pass(60, replica)

    cluster = play(SteeredCluster(folder), withdrawn)

    assert not cluster.events("replanned")


def test_two_agents_of_one_host_are_one_node_and_the_worse_news_counts(folder: Path) -> None:
    async def twins(cluster: SteeredCluster) -> None:
        cluster.add_agent("twin", instance_id="i-agent-0")
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("twin")
        cluster.notice("agent-0", kind="hint")
        await cluster.let_pass(60, replica)
        assert sum(replica.decider.asked[-1].now.staying.values()) == 2

    assert len(play(SteeredCluster(folder), twins).events("replanned")) == 1


def test_a_notice_for_a_host_that_no_plan_asked_for_changes_nothing(folder: Path) -> None:
    async def stranger(cluster: SteeredCluster) -> None:
        cluster.add_agent("stranger", pool=Pool.parse("p3.2xlarge@use1-az1/spot"))
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("stranger")
        await cluster.let_pass(60, replica)

    assert not play(SteeredCluster(folder), stranger).events("replanned")


@pytest.mark.parametrize("off_s", [3600.0, -3600.0])
@pytest.mark.parametrize(("cloud", "left_s"), [("aws", 120), ("gcp", 30), ("azure", 120)])
def test_an_agent_whose_clock_is_off_by_an_hour_is_neither_silent_nor_late(
    folder: Path, cloud: str, left_s: float, off_s: float
) -> None:
    async def off(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        cluster.change("agent-0", clock_skew_s=off_s)
        await cluster.let_pass(120, replica)
        assert not cluster.events("node-lost")
        now = after(cluster.now_s)
        told = heard(cloud, lambda s: s.interrupt(now_s=now.timestamp()), now=now, off_s=off_s)
        cluster.change("agent-0", notice=told)
        await cluster.let_pass(10, replica)

    cluster = play(SteeredCluster(folder), off)

    assert len(cluster.events("replanned")) == 1
    assert cluster.told.saved[0][1] == pytest.approx(left_s, abs=6)


def test_a_node_that_falls_silent_is_lost(folder: Path) -> None:
    async def silent(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.change("agent-1", session_id="")
        await cluster.let_pass(60, replica)

    cluster = play(SteeredCluster(folder), silent)

    assert len(cluster.events("node-lost")) == 1
    assert cluster.store.job(JOB).plan_id != "plan-1"


def test_a_job_is_steered_though_the_catalog_has_lost_the_pool_that_failed(folder: Path) -> None:
    prices = tuple(p for p in snapshot().prices if p.instance_type != "g4dn.xlarge")
    smaller = Catalog(replace(snapshot(), prices=prices))

    cluster = play(SteeredCluster(folder, source=smaller), lose_one)

    fleet = cluster.planned.of(cluster.store.job(JOB).plan_id).workers
    assert fleet
    assert all(pool.instance_type != "g4dn.xlarge" for pool in fleet)


def test_prices_that_rise_are_told_once_and_counted(folder: Path) -> None:
    async def dearer(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        replica.decider.dearer = 2.0
        await cluster.let_pass(3600, replica)
        usual_usd = 3 * cluster.planned.of("plan-1").prices_usd_per_hour[cluster.pool]
        spent_usd = cluster.store.job(JOB).course.spent_usd
        assert spent_usd is not None
        assert 1.6 * usual_usd < spent_usd < 2.1 * usual_usd

    cluster = play(SteeredCluster(folder), dearer)

    assert len(cluster.events("price-change")) == 1


def test_nothing_is_paid_while_no_node_is_left(folder: Path) -> None:
    async def all_lost(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(120, replica)
        for number in range(3):
            cluster.change(f"agent-{number}", session_id="")
        await cluster.let_pass(60, replica)
        before = cluster.store.job(JOB).course.spent_usd
        await cluster.let_pass(3600, replica)
        assert cluster.store.job(JOB).course.spent_usd == before

    play(SteeredCluster(folder), all_lost)


@pytest.mark.parametrize("steer", [Steer.OFF, Steer.ANNOUNCE])
def test_nodes_that_were_granted_in_another_market_cost_what_the_catalog_says(
    folder: Path, steer: Steer
) -> None:
    granted = Pool.parse("g4dn.xlarge@use1-az6/on-demand")

    async def on_demand(cluster: SteeredCluster) -> None:
        for number in range(3):
            cluster.add_agent(f"agent-{number}", pool=granted)
        replica = cluster.replica("a")
        await cluster.let_pass(1800, replica)
        spent_usd = cluster.store.job(JOB).course.spent_usd
        assert spent_usd == pytest.approx(3 * 0.526 * 0.5, rel=0.05)
        bill = report_job(JOB, cluster.store, cluster.planned, now=after(cluster.now_s)).accounts
        assert bill is not None
        assert bill.spent_usd == pytest.approx(spent_usd, rel=0.05)

    cluster = play(SteeredCluster(folder, steer=steer), on_demand)

    assert [event.facts["pool"] for event in cluster.events("price-unknown")] == [str(granted)]


def test_the_bill_is_whole_after_a_plan_that_leaves_a_pool(folder: Path) -> None:
    async def moved(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(600, replica)
        for number in range(2):
            cluster.notice(f"agent-{number}")
        await cluster.let_pass(60, replica)
        workers = cluster.planned.of(cluster.store.job(JOB).plan_id).workers
        assert cluster.pool not in workers
        for pool, count in workers.items():
            for number in range(count):
                cluster.add_agent(f"{pool.instance_type}-{number}", pool=pool)
        await cluster.let_pass(60, replica)
        for number in range(3):
            cluster.change(f"agent-{number}", session_id="", notice=None)
        await cluster.let_pass(1200, replica)
        report = report_job(JOB, cluster.store, cluster.planned, now=after(cluster.now_s))
        assert report.accounts is not None
        assert report.accounts.unpriced_node_hours == 0
        spent_usd = cluster.store.job(JOB).course.spent_usd
        assert report.accounts.spent_usd == pytest.approx(spent_usd, rel=0.1)

    play(SteeredCluster(folder), moved)


def test_a_job_that_is_only_announced_is_not_carried_out(folder: Path) -> None:
    cluster = play(SteeredCluster(folder, steer=Steer.ANNOUNCE), lose_one)

    assert len(cluster.events("replanned")) == 1
    assert cluster.cloud.applied == cluster.cloud.written == []


def test_a_job_whose_fleet_is_only_written_is_written_anew_with_each_plan(folder: Path) -> None:
    cluster = play(SteeredCluster(folder, steer=Steer.WRITE), lose_one)

    plans = ["plan-1", cluster.store.job(JOB).plan_id]
    assert plans[1] != "plan-1"
    assert cluster.cloud.written == [f"variables of {plan_id}" for plan_id in plans]
    assert [event.facts["plan_id"] for event in cluster.events("fleet-written")] == plans
    assert not cluster.cloud.applied


def test_a_job_that_is_not_steered_is_forecast_and_left_alone(folder: Path) -> None:
    cluster = play(SteeredCluster(folder, steer=Steer.OFF), lose_one)

    job = cluster.store.job(JOB)
    assert (job.plan_id, cluster.cloud.applied) == ("plan-1", [])
    assert job.course.forecast is not None


def test_limits_of_the_job_hold_for_every_fleet_that_is_decided(folder: Path) -> None:
    async def losing(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        for number in range(3):
            await cluster.let_pass(60, replica)
            cluster.notice(f"agent-{number}")
        await cluster.let_pass(60, replica)

    cluster = play(SteeredCluster(folder), losing)

    events = cluster.events("replanned")
    assert events
    for event in events:
        workers = cluster.planned.of(event.facts["plan_id"]).workers
        assert 0 < sum(workers.values()) <= 8
        assert {pool.zone for pool in workers} == {"use1-az6"}
        assert {pool.instance_type for pool in workers} <= {
            "g4dn.xlarge",
            "g4dn.12xlarge",
            "g5.xlarge",
        }
