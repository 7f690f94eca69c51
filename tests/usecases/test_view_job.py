from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from spotwright.domain.job_run import JobState
from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import NodeState
from spotwright.domain.telemetry import AgentFacts, AgentNotice, AgentRecord
from spotwright.usecases.view_job import Seen, rented, unpriced, usd_per_hour, view_job
from tests.usecases.example_job_run import after, agent_record, job_run, planned_run

SPOT = Pool("g5.xlarge", "use1-az4", Market.SPOT)
SERVER = Pool("m5.xlarge", "use1-az4", Market.ON_DEMAND)
PRICES = {SPOT: 0.5, SERVER: 0.2}
PLANNED = replace(planned_run(), workers={SPOT: 2}, servers={SERVER: 1}, prices_usd_per_hour=PRICES)
JOB = job_run(state=JobState.RUNNING)
NOW = after(1000)


def agent(
    name: str, *, pool: Pool = SPOT, seen: datetime = NOW, host: str = "", notice: str = ""
) -> AgentRecord:
    facts = AgentFacts(
        agent_id=name,
        boot_id="boot",
        job_id=JOB.job_id,
        instance_id=host or f"i-{name}",
        instance_type=pool.instance_type,
        zone=pool.zone,
        market=str(pool.market),
    )
    said = None
    if notice:
        said = AgentNotice(kind=notice, time=NOW, deadline=after(1120), source="aws", detail="")
    return replace(agent_record(name, last_seen=seen), facts=facts, notice=said)


def seen(
    *agents: AgentRecord,
    now: datetime = NOW,
    up_since: datetime = after(0),  # noqa: B008
    leaving_until: dict[str, float] | None = None,
    starting_since: dict[str, float] | None = None,
) -> Seen:
    return view_job(
        JOB,
        PLANNED,
        agents,
        now=now,
        up_since=up_since,
        leaving_until=leaving_until or {},
        starting_since=starting_since or {},
    )


def states(found: Seen) -> dict[str, NodeState]:
    return {node.node_id: node.state for node in found.view.nodes}


def test_hosts_are_seen_by_what_their_agents_say() -> None:
    found = seen(agent("a"), agent("b", notice="interruption"), agent("ps", pool=SERVER))

    assert states(found) == {"i-a": NodeState.TRAINING, "i-b": NodeState.LEAVING}
    assert (found.view.time_s, found.view.asked) == (1000.0, {SPOT: 2})
    assert found.leaving_until == {"i-b": after(1120).timestamp()}
    assert usd_per_hour(rented(found, PLANNED), PRICES) == pytest.approx(2 * 0.5 + 0.2)


def test_a_hint_is_no_notice() -> None:
    assert states(seen(agent("a", notice="hint"))) == {"i-a": NodeState.HINTED}


def test_a_host_that_made_no_step_while_others_do_is_starting() -> None:
    stepping = replace(agent("a"), latest_step=b"step")

    found = seen(stepping, agent("b"))

    assert states(found) == {"i-a": NodeState.TRAINING, "i-b": NodeState.STARTING}
    assert found.starting_since == {"i-b": NOW.timestamp()}
    assert seen(agent("a"), agent("b")).starting_since == {}


@pytest.mark.parametrize(
    ("since_s", "state"), [(101, NodeState.STARTING), (100, NodeState.TRAINING)]
)
def test_a_host_does_not_start_for_ever(since_s: int, state: NodeState) -> None:
    stepping, since = replace(agent("a"), latest_step=b"step"), after(since_s).timestamp()

    found = seen(stepping, agent("b"), starting_since={"i-b": since})

    assert states(found)["i-b"] is state
    assert found.starting_since == {"i-b": since}


def test_a_host_is_gone_once_all_its_agents_were_silent_for_long() -> None:
    silent = after(1000 - 31)

    assert states(seen(agent("a", seen=silent))) == {}
    both = seen(agent("a", seen=silent, host="i"), agent("b", host="i"))
    assert states(both) == {"i": NodeState.TRAINING}


def test_a_daemon_that_was_away_waits_before_it_takes_hosts_for_gone() -> None:
    silent = agent("a", seen=after(500))

    assert states(seen(silent, up_since=after(980)))
    assert not states(seen(silent, up_since=after(960)))


@pytest.mark.parametrize(
    ("at_s", "state"),
    [(1119, NodeState.TRAINING), (1121, NodeState.LEAVING), (1181, NodeState.TRAINING)],
)
def test_a_notice_that_is_gone_was_taken_back_before_its_time_and_ran_out_after(
    at_s: float, state: NodeState
) -> None:
    now = after(at_s)
    found = seen(agent("a", seen=now), now=now, leaving_until={"i-a": after(1120).timestamp()})

    assert states(found) == {"i-a": state}


def test_hosts_beyond_those_that_are_asked_for_are_on_their_way_out_and_paid_for() -> None:
    other = Pool("g5.xlarge", "use1-az6", Market.SPOT)
    found = seen(*(agent(name) for name in "abc"), agent("d", pool=other))

    assert len(found.view.nodes) == 2
    assert len(found.hosts) == 4
    assert usd_per_hour(rented(found, PLANNED), {**PRICES, other: 1.0}) == pytest.approx(2.7)


def test_the_plan_is_paid_for_only_until_a_host_was_seen() -> None:
    never, gone = seen(), seen(agent("a", seen=after(100)))

    assert rented(never, PLANNED) == {SPOT: 2, SERVER: 1}
    assert rented(gone, PLANNED) == {SERVER: 1}


def test_a_server_that_runs_an_agent_is_paid_for_once() -> None:
    assert rented(seen(agent("ps", pool=SERVER)), PLANNED) == {SERVER: 1}


def test_a_host_in_a_pool_without_a_price_is_told_and_not_free() -> None:
    granted = Pool("g5.xlarge", "use1-az4", Market.ON_DEMAND)
    nodes = rented(seen(agent("a", pool=granted), agent("b")), PLANNED)

    assert unpriced(nodes, PRICES) == {granted}
    with pytest.raises(KeyError):
        usd_per_hour(nodes, PRICES)


def test_agents_that_do_not_tell_where_they_run_are_no_part_of_the_fleet() -> None:
    unknown = replace(agent("a"), facts=AgentFacts(agent_id="a", boot_id="b", job_id=JOB.job_id))

    assert seen(unknown).hosts == ()


def test_clocks_of_hosts_do_not_matter() -> None:
    off = replace(agent("a"), clock_skew_s=timedelta(hours=1).total_seconds())

    assert seen(off) == seen(agent("a"))._replace(hosts=seen(off).hosts)
