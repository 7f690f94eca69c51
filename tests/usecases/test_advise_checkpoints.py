"""Which hosts are told about checkpoints, and what is not told again."""

from pathlib import Path

import pytest

from spotwright.domain.offer import Market, Pool
from spotwright.domain.steering import NodeState, Weather
from spotwright.usecases.advise_checkpoints import (
    agents_of,
    checkpoint_interval_s,
    is_news,
    newly_leaving,
)
from spotwright.usecases.view_job import Host
from tests.usecases.example_job_run import agent_record
from tests.usecases.steered_cluster import SteeredCluster
from tests.usecases.steered_story import play

POOL = Pool("g5.xlarge", "use1-az1", Market.SPOT)
STAYS, LEAVES, HINTED = NodeState.TRAINING, NodeState.LEAVING, NodeState.HINTED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advised")


@pytest.mark.parametrize(
    ("told_s", "now_s", "news"),
    [
        (None, 600.0, True),
        (600.0, 600.0, False),
        (600.0, 719.0, False),
        (600.0, 721.0, True),
        (600.0, 481.0, False),
        (600.0, 479.0, True),
        (600.0, None, False),
        (None, None, False),
    ],
)
def test_an_interval_is_news_when_it_differs_by_a_fifth(
    told_s: float | None, now_s: float | None, news: bool
) -> None:
    assert is_news(now_s, told_s) is news


def test_there_is_no_interval_where_nothing_is_lost_or_nothing_takes_time() -> None:
    assert checkpoint_interval_s(10.0, planned_per_hour=0.0, weather={}) is None
    assert checkpoint_interval_s(0.0, planned_per_hour=1.0, weather={}) is None
    seen = {POOL: Weather(losses=1)}
    assert checkpoint_interval_s(10.0, planned_per_hour=0.0, weather=seen) is not None


def test_a_node_leaves_newly_once_and_a_hint_is_no_leaving() -> None:
    states = {"new": LEAVES, "known": LEAVES, "turned": LEAVES, "hinted": HINTED, "stays": STAYS}
    before = {"known": (POOL, LEAVES), "turned": (POOL, HINTED), "stays": (POOL, STAYS)}

    assert newly_leaving(states, before) == ["new", "turned"]


def test_all_agents_of_hosts_are_told_by_name() -> None:
    two = Host(node_id="i-1", pool=POOL, agents=(agent_record("b"), agent_record("a")))
    one = Host(node_id="i-0", pool=POOL, agents=(agent_record("c"),))

    assert agents_of({"i-1": two, "i-0": one}) == ["a", "b", "c"]


def test_every_host_is_told_the_interval_once_and_a_later_one_by_itself(folder: Path) -> None:
    async def another(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        replica.decider.held.clear()  # the fleet stays what it was
        del cluster.store.agent_records["agent-2"]
        await cluster.let_pass(60, replica)
        cluster.add_agent("late")
        await cluster.let_pass(60, replica)
        replica.decider.held.set()
        await replica.steering.wait()

    told = play(SteeredCluster(folder), another).told

    everybody, left = ("agent-0", "agent-1", "agent-2"), ("agent-0", "agent-1")
    assert told.advised == [everybody, left, ("late",)]
    assert told.intervals_s[2] == told.intervals_s[1] < told.intervals_s[0]  # a loss was seen


def test_the_interval_is_not_told_again_by_the_next_controller(folder: Path) -> None:
    async def followed(cluster: SteeredCluster) -> None:
        await cluster.let_pass(120, cluster.replica("a"))
        await cluster.let_pass(300, cluster.replica("b"))

    cluster = play(SteeredCluster(folder), followed)

    assert cluster.told.advised == [("agent-0", "agent-1", "agent-2")]
    assert len(cluster.events("checkpoint-advice")) == 1


def test_saving_is_asked_for_once_however_often_the_cloud_repeats_itself(folder: Path) -> None:
    async def repeated(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        replica.decider.held.clear()  # the fleet stays what it was
        cluster.notice("agent-0")
        await cluster.let_pass(30, replica)
        cluster.notice("agent-0")  # with another deadline
        await cluster.let_pass(30, replica)
        replica.decider.held.set()
        await replica.steering.wait()

    told = play(SteeredCluster(folder), repeated).told

    assert [agents for agents, _ in told.saved] == [("agent-0", "agent-1", "agent-2")]


def test_a_hint_asks_nobody_to_save(folder: Path) -> None:
    async def hinted(cluster: SteeredCluster) -> None:
        replica = cluster.replica("a")
        await cluster.let_pass(60, replica)
        cluster.notice("agent-0", kind="hint")
        await cluster.let_pass(30, replica)

    assert play(SteeredCluster(folder), hinted).told.saved == []
