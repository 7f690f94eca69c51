"""Questions about agents and what they sent, and commands, over real connections."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import grpc
import pytest

from spotwright.adapters.grpc.pages import token_of
from spotwright.domain.telemetry import AgentFacts, BatchKey, QueuedCommand, ReceivedBatch
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.adapters.grpc.telemetry.telemetry_daemon import (
    SOON_S,
    TalkingAgent,
    TelemetryDaemon,
    batch,
    connected,
    telemetry_daemon,
    until,
)
from tests.fakes.memory_telemetry_store import MemoryTelemetryStore


class Scene(NamedTuple):
    """A daemon, its store, and someone who asks."""

    store: MemoryTelemetryStore
    daemon: TelemetryDaemon
    stub: TelemetryServiceStub


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    store = MemoryTelemetryStore()
    async with telemetry_daemon(store) as daemon, connected(daemon.port) as stub:
        yield Scene(store, daemon, stub)


def know(store: MemoryTelemetryStore, *agent_ids: str, job_id: str = "") -> None:
    for agent_id in agent_ids:
        facts = AgentFacts(agent_id=agent_id, boot_id="b", job_id=job_id)
        store.open_session(facts, session_id=f"of {agent_id}", replica="there")


async def sent(scene: Scene, *batches: v1.Batch) -> None:
    """Have agent `a` send batches, all of them stored when this returns."""
    agent = TalkingAgent(scene.stub)
    await agent.hello()
    for each in batches:
        await agent.send(each)
    await agent.finish()
    await agent.acked_up_to(batches[-1].sequence)
    await agent.end()


def test_agents_are_listed_by_name_page_by_page() -> None:
    async def run() -> list[list[str]]:
        async with scene() as here:
            know(here.store, "c", "a", "d", "b", "e")
            pages, token = [], None
            while token != "":
                request = v1.ListAgentsRequest(page_size=2, page_token=token or "")
                page = await here.stub.ListAgents(request)
                pages.append([agent.facts.agent_id for agent in page.agents])
                token = page.next_page_token
            return pages

    assert asyncio.run(run()) == [["a", "b"], ["c", "d"], ["e"]]


def test_an_agent_shows_its_latest_figures() -> None:
    now_ms = time.time_ns() // 1_000_000
    notice = v1.Notice(kind=v1.NOTICE_KIND_HINT, time_unix_ms=now_ms, source="gcp", detail="soon")
    fault = v1.CollectorFault(collector="gpu", problem="lost")
    step = v1.StepSample(time_unix_ms=now_ms, step=9, step_s=0.5)
    last = batch(2, notices=[notice], faults=[fault], steps=[step], dropped_sample_count=4)

    async def run() -> v1.Agent:
        async with scene() as here:
            agent = TalkingAgent(here.stub)
            await agent.hello(job_id="j", gpu_names=["T4", "T4"])
            await agent.send(batch(1))
            await agent.send(last)
            await agent.acked_up_to(2)
            answer = await here.stub.ListAgents(v1.ListAgentsRequest(job_id="j"))
            return answer.agents[0]

    found = asyncio.run(run())

    assert found.connected
    assert found.facts == v1.AgentFacts(
        agent_id="a", boot_id="b", job_id="j", gpu_names=["T4", "T4"]
    )
    assert found.latest_sample == last.samples[0]
    assert (found.latest_step, found.notice, list(found.faults)) == (step, notice, [fault])
    assert (found.last_sequence, found.dropped_sample_count, found.clock_skew_s) == (2, 4, 0.0)
    assert abs(found.last_seen_time.ToMilliseconds() - now_ms) < 60_000


def test_samples_come_back_at_corrected_times_across_pages_that_split_a_batch() -> None:
    now_ms = time.time_ns() // 1_000_000 // 1000 * 1000
    hour_ms = 3_600_000

    def five(sequence: int, first_ms: int) -> v1.Batch:
        """Five seconds, by a clock that is an hour ahead."""
        samples = [
            v1.HostSample(time_unix_ms=first_ms + 1000 * i + hour_ms, interval_s=1.0)
            for i in range(5)
        ]
        send_ms = time.time_ns() // 1_000_000 + hour_ms
        return v1.Batch(sequence=sequence, send_time_unix_ms=send_ms, samples=samples)

    async def run() -> tuple[list[int], list[int]]:
        async with scene() as here:
            await sent(here, *(five(n, now_ms + 5000 * (n - 1)) for n in (1, 2, 3)))
            request = v1.ListSamplesRequest(agent_id="a", page_size=4)
            request.start_time.FromMilliseconds(now_ms + 500)
            request.end_time.FromMilliseconds(now_ms + 13_500)
            times, sizes = list[int](), list[int]()
            while not sizes or request.page_token:
                page = await here.stub.ListSamples(request)
                times += [found.time_unix_ms for found in page.samples]
                sizes.append(len(page.samples))
                request.page_token = page.next_page_token
            return times, sizes

    times, sizes = asyncio.run(run())

    assert sizes == [4, 4, 4, 1]
    for found_ms, second in zip(times, range(1, 14), strict=True):
        assert abs(found_ms - now_ms - 1000 * second) < 500  # the way to the daemon counts as skew


def test_rollups_give_means_and_extremes_by_interval() -> None:
    start_ms = time.time_ns() // 1_000_000 // 60_000 * 60_000
    utilization = {1: (0.25, 0.75), 11: (0.5, 1.0)}

    def at(second: int) -> v1.HostSample:
        gpus = [v1.GpuSample(utilization_fraction=share) for share in utilization[second]]
        return v1.HostSample(time_unix_ms=start_ms + 1000 * second, gpus=gpus)

    now_ms = time.time_ns() // 1_000_000
    whole = v1.Batch(sequence=1, send_time_unix_ms=now_ms, samples=[at(1), at(11)])

    async def run(resolution: v1.RollupResolution) -> list[tuple[int, int, float, float]]:
        async with scene() as here:
            await sent(here, whole)
            request = v1.ListRollupsRequest(agent_id="a", resolution=resolution)
            answer = await here.stub.ListRollups(request)
            return [
                (
                    found.start_time.ToMilliseconds() - start_ms,
                    found.gpu_sample_count,
                    found.statistics["utilization_fraction"].mean,
                    found.statistics["utilization_fraction"].max,
                )
                for found in answer.rollups
            ]

    fine = asyncio.run(run(v1.ROLLUP_RESOLUTION_TEN_SECONDS))
    coarse = asyncio.run(run(v1.ROLLUP_RESOLUTION_MINUTE))

    assert fine == [(0, 2, 0.5, 0.75), (10_000, 2, 0.75, 1.0)]
    assert coarse == [(0, 4, 0.625, 1.0)]


@pytest.mark.parametrize(
    ("resolution", "sizes"),
    [(v1.ROLLUP_RESOLUTION_TEN_SECONDS, [3, 3, 3, 1]), (v1.ROLLUP_RESOLUTION_MINUTE, [2])],
)
def test_rollups_come_page_by_page(resolution: v1.RollupResolution, sizes: list[int]) -> None:
    start_ms = time.time_ns() // 1_000_000 // 60_000 * 60_000
    samples = [v1.HostSample(time_unix_ms=start_ms + 10_000 * i + 500) for i in range(12)]
    del samples[4], samples[7]  # at 0..30, 50..70 and 90..110 s
    whole = v1.Batch(sequence=1, send_time_unix_ms=time.time_ns() // 1_000_000, samples=samples)

    async def run() -> list[list[int]]:
        async with scene() as here:
            await sent(here, whole)
            pages = list[list[int]]()
            request = v1.ListRollupsRequest(agent_id="a", resolution=resolution, page_size=3)
            while not pages or request.page_token:
                answer = await here.stub.ListRollups(request)
                pages.append([found.start_time.ToMilliseconds() for found in answer.rollups])
                request.page_token = answer.next_page_token
            return pages

    pages = asyncio.run(run())

    width_ms = 60_000 if len(sizes) == 1 else 10_000
    expected = {sample.time_unix_ms // width_ms * width_ms for sample in samples}
    assert [len(page) for page in pages] == sizes
    assert [start for page in pages for start in page] == sorted(expected)


def _with_resolution(number: Any) -> v1.ListRollupsRequest:
    return v1.ListRollupsRequest(agent_id="a", resolution=number)


@pytest.mark.parametrize(
    ("method", "request_", "code"),
    [
        ("ListAgents", v1.ListAgentsRequest(page_size=-1), "INVALID_ARGUMENT"),
        ("ListAgents", v1.ListAgentsRequest(page_token="%"), "INVALID_ARGUMENT"),
        ("ListSamples", v1.ListSamplesRequest(agent_id="nobody"), "NOT_FOUND"),
        ("ListSamples", v1.ListSamplesRequest(agent_id="a", page_token="x"), "INVALID_ARGUMENT"),
        ("ListSamples", v1.ListSamplesRequest(agent_id="a", page_size=-1), "INVALID_ARGUMENT"),
        ("ListRollups", v1.ListRollupsRequest(agent_id="nobody"), "NOT_FOUND"),
        ("ListRollups", _with_resolution(9), "INVALID_ARGUMENT"),
        ("ListRollups", v1.ListRollupsRequest(agent_id="a", page_size=-1), "INVALID_ARGUMENT"),
        *(
            ("ListRollups", v1.ListRollupsRequest(agent_id="a", page_token=t), "INVALID_ARGUMENT")
            for t in ("x", token_of("x"), token_of("9" * 30))
        ),
        (
            "ListSamples",
            v1.ListSamplesRequest(agent_id="a", page_token=token_of("9" * 30 + ":0")),
            "INVALID_ARGUMENT",
        ),
        ("SendCommand", v1.SendCommandRequest(agent_id="a"), "INVALID_ARGUMENT"),
        (
            "SendCommand",
            v1.SendCommandRequest(agent_id="nobody", command=v1.Command(drain=v1.Drain())),
            "NOT_FOUND",
        ),
    ],
)
def test_questions_that_make_no_sense_are_told_so(method: str, request_: object, code: str) -> None:
    async def run() -> str:
        async with scene() as here:
            know(here.store, "a")
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await getattr(here.stub, method)(request_)
            return str(refusal.value.code().name)

    assert asyncio.run(run()) == code


def test_a_command_reaches_its_agent_at_once_and_its_next_welcome() -> None:
    sampling = v1.Sampling(interval_s=0.5, batch_s=2.0)

    async def run() -> None:
        async with scene() as here:
            agent = TalkingAgent(here.stub)
            await agent.hello()
            request = v1.SendCommandRequest(agent_id="a", command=v1.Command(set_sampling=sampling))
            answer = await here.stub.SendCommand(request)
            command = (await agent.hear()).command
            assert command.command_id == answer.command_id
            assert command.set_sampling == sampling
            again = TalkingAgent(here.stub)
            assert (await again.hello()).sampling == sampling

    asyncio.run(run())


def test_a_command_queued_at_another_replica_is_fetched() -> None:
    async def run() -> None:
        async with scene() as here:
            agent = TalkingAgent(here.stub)
            await agent.hello()
            command = v1.Command(command_id="c1", drain=v1.Drain(reconnect_after_s=3))
            here.store.queue_command(
                QueuedCommand(command_id="c1", agent_id="a", document=command.SerializeToString())
            )
            assert (await agent.hear()).command == command

    asyncio.run(run())


def test_watching_shows_all_agents_first_and_then_those_that_changed() -> None:
    async def run() -> None:
        async with scene() as here:
            know(here.store, "x", "y")
            know(here.store, "other", job_id="j")
            call = here.stub.WatchAgents(v1.WatchAgentsRequest(interval_s=0.1))
            first = await asyncio.wait_for(call.read(), SOON_S)
            assert [agent.facts.agent_id for agent in first.agents] == ["other", "x", "y"]
            here.store.close_session("x", "of x")
            second = await asyncio.wait_for(call.read(), SOON_S)
            assert [(a.facts.agent_id, a.connected) for a in second.agents] == [("x", False)]
            call.cancel()

    asyncio.run(run())


def test_watching_tells_when_agents_went_away_with_their_replica() -> None:
    now_s = [time.time()]
    store = MemoryTelemetryStore()

    async def run() -> None:
        async with (
            telemetry_daemon(store, clock=lambda: now_s[0]) as daemon,
            connected(daemon.port) as stub,
        ):
            know(store, "x")
            store.commit_batches([_empty_batch("x", receive_unix_ms=int(now_s[0] * 1000))])
            agent = TalkingAgent(stub)
            await agent.hello("mine")
            call = stub.WatchAgents(v1.WatchAgentsRequest(interval_s=0.1))
            first = await asyncio.wait_for(call.read(), SOON_S)
            assert [a.connected for a in first.agents] == [True, True]
            now_s[0] += 301.0
            second = await asyncio.wait_for(call.read(), SOON_S)
            assert [(a.facts.agent_id, a.connected) for a in second.agents] == [("x", False)]
            call.cancel()

    asyncio.run(run())


def _empty_batch(agent_id: str, *, receive_unix_ms: int) -> ReceivedBatch:
    return ReceivedBatch(
        key=BatchKey(agent_id, "b", 1),
        job_id="",
        receive_unix_ms=receive_unix_ms,
        first_unix_ms=receive_unix_ms,
        last_unix_ms=receive_unix_ms,
        clock_skew_s=0.0,
        document=b"",
        parts=(),
    )


def test_an_agent_that_sent_nothing_is_connected_only_where_its_session_is_open_here() -> None:
    async def run() -> None:
        async with scene() as here:
            know(here.store, "of a replica that died")
            agent = TalkingAgent(here.stub)
            await agent.hello("mine")
            found = (await here.stub.ListAgents(v1.ListAgentsRequest())).agents
            assert [(a.facts.agent_id, a.connected) for a in found] == [
                ("mine", True),
                ("of a replica that died", False),
            ]

    asyncio.run(run())


def test_many_watchers_share_one_look_at_the_store() -> None:
    async def run() -> int:
        async with scene() as here:
            know(here.store, "x")
            calls = [here.stub.WatchAgents(v1.WatchAgentsRequest()) for _ in range(20)]
            for call in calls:
                await asyncio.wait_for(call.read(), SOON_S)
                call.cancel()
            return here.store.look_count

    assert asyncio.run(run()) <= 2


def test_a_daemon_that_stops_ends_watches_and_answers_no_more_questions() -> None:
    async def run() -> None:
        async with scene() as here:
            know(here.store, "x")
            call = here.stub.WatchAgents(v1.WatchAgentsRequest(interval_s=3600))
            await asyncio.wait_for(call.read(), SOON_S)
            await here.daemon.service.close()
            assert await asyncio.wait_for(call.code(), SOON_S) is grpc.StatusCode.UNAVAILABLE
            with pytest.raises(grpc.aio.AioRpcError, match="the daemon stops"):
                await here.stub.ListAgents(v1.ListAgentsRequest())

    asyncio.run(run())


def test_a_slow_watcher_finds_the_latest_figures_and_nothing_in_between() -> None:
    """The connection takes 64 KiB, which is less than the agents need for one message."""
    names = [f"agent-{number:04}" for number in range(300)]
    window = (("grpc.http2.lookahead_bytes", 65_536), ("grpc.http2.bdp_probe", 0))

    async def run() -> list[str]:
        store = MemoryTelemetryStore()
        async with (
            telemetry_daemon(store, options=window) as daemon,
            connected(daemon.port) as stub,
        ):
            know(store, *names)
            for agent in names:
                _set_hostname(store, agent, "0" + "x" * 1000)
            call = stub.WatchAgents(v1.WatchAgentsRequest(interval_s=0.1))
            await asyncio.wait_for(call.read(), SOON_S)
            for look in range(1, 4):
                before = store.look_count
                for agent in names:
                    _set_hostname(store, agent, str(look) + "x" * 1000)
                other = stub.WatchAgents(v1.WatchAgentsRequest(job_id="nobody's"))
                await asyncio.wait_for(other.read(), SOON_S)
                await until(lambda before=before: store.look_count > before)  # type: ignore[misc]
                other.cancel()
            versions = list[str]()
            while not versions or versions[-1] != "3":
                response = await asyncio.wait_for(call.read(), SOON_S)
                versions += [agent.facts.hostname[0] for agent in response.agents]
            call.cancel()
            return versions

    versions = asyncio.run(run())

    assert len(versions) <= 3 * len(names)  # not one message for every look


def _set_hostname(store: MemoryTelemetryStore, agent_id: str, hostname: str) -> None:
    facts = AgentFacts(agent_id=agent_id, boot_id="b", hostname=hostname)
    store.open_session(facts, session_id="s", replica="there")
