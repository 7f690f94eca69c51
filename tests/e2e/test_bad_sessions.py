"""Agents that break the rules of a session end with a status, and hinder no other."""

import asyncio
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import grpc
import pytest

from spotwright.v1 import telemetry_pb2 as v1
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import OWN_CONNECTION, assert_all_stored_once, sending_fleet
from tests.e2e.bad_requests import HOSTILE_TEXTS, fill
from tests.e2e.test_bad_input import rss_bytes

SESSION = "/spotwright.v1.TelemetryService/Session"
PROPER = {"OK", "INVALID_ARGUMENT", "ABORTED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"}
_PER_CONNECTION = 8  # fewer than the rate limit lets through at once


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


def hello(agent_id: str = "bad", boot_id: str = "b", **facts: str) -> bytes:
    facts_message = v1.AgentFacts(agent_id=agent_id, boot_id=boot_id, **facts)
    return v1.SessionRequest(hello=facts_message).SerializeToString()


def batch(sequence: int, *, sample_count: int = 1, **fields: Any) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    sample = v1.HostSample(time_unix_ms=now_ms, interval_s=1, **fields)
    message = v1.Batch(sequence=sequence, send_time_unix_ms=now_ms, samples=[sample] * sample_count)
    return v1.SessionRequest(batch=message).SerializeToString()


SAID_BADLY: dict[str, tuple[Sequence[bytes], set[str]]] = {
    "nothing": ([], {"INVALID_ARGUMENT"}),
    "an empty message": ([b""], {"INVALID_ARGUMENT"}),
    "no hello": ([batch(1)], {"INVALID_ARGUMENT"}),
    "two hellos": ([hello(), hello()], {"INVALID_ARGUMENT"}),
    "random bytes first": ([b"\xff\x01\x02"], {"INVALID_ARGUMENT"}),
    "random bytes later": ([hello(), b"\xff\x01\x02"], {"INVALID_ARGUMENT"}),
    "half a batch": ([hello(), batch(1)[:-3]], {"INVALID_ARGUMENT"}),
    "sequence zero": ([hello(), batch(0)], {"INVALID_ARGUMENT"}),
    "a negative sequence": ([hello(), batch(-1)], {"INVALID_ARGUMENT"}),
    "a huge sequence": ([hello("huge"), batch(2**63 - 1)], {"OK"}),
    "sequences backwards": ([hello("back"), batch(3), batch(2), batch(1)], {"OK"}),
    "601 samples": ([hello(), batch(1, sample_count=601)], {"INVALID_ARGUMENT"}),
    "more bytes than allowed": ([hello(), batch(1, sample_count=60_000)], {"INVALID_ARGUMENT"}),
    "nine batches at once": (
        [hello("fast"), *(batch(i) for i in range(1, 10))], {"OK", "RESOURCE_EXHAUSTED"},
    ),
    "not a number": ([hello(), batch(1, cpu_fraction=math.nan)], {"INVALID_ARGUMENT"}),
    "infinity": ([hello(), batch(1, network_rx_mbps=math.inf)], {"INVALID_ARGUMENT"}),
    "a negative figure": ([hello(), batch(1, disk_read_mbps=-1)], {"INVALID_ARGUMENT"}),
    "no agent id": ([hello("")], {"INVALID_ARGUMENT"}),
    "no boot id": ([hello("x", "")], {"INVALID_ARGUMENT"}),
    "a long agent id": ([hello("x" * 100_000)], {"INVALID_ARGUMENT"}),
    "NUL in the id": ([hello("a\0b")], {"INVALID_ARGUMENT"}),
    "NUL in the host name": ([hello("x", hostname="a\0b")], {"INVALID_ARGUMENT"}),
    "a response": ([b"\x12\x02\x08\x01"], {"INVALID_ARGUMENT"}),
}  # fmt: skip


def _said(channel: grpc.Channel, requests: Sequence[bytes]) -> str:
    """Say everything, close, and return how the session ended."""
    call = channel.stream_stream(SESSION)(iter(requests), timeout=20.0)
    with suppress(grpc.RpcError):
        for _ in call:
            pass
    return str(call.code().name)


def _said_all(address: str, sessions: Sequence[Sequence[bytes]]) -> list[str]:
    """Return how each session ended. Blocks: grpc.aio hides the status after a failed write."""
    found = []
    for start in range(0, len(sessions), _PER_CONNECTION):
        with grpc.insecure_channel(address, options=OWN_CONNECTION) as channel:
            some = sessions[start : start + _PER_CONNECTION]
            found += [_said(channel, requests) for requests in some]
    return found


def test_each_broken_rule_ends_the_session_with_its_status(daemon: DaemonProcess) -> None:
    ends = _said_all(daemon.address, [said for said, _ in SAID_BADLY.values()])

    wrong = {
        case: end
        for (case, (_, allowed)), end in zip(SAID_BADLY.items(), ends, strict=True)
        if end not in allowed
    }
    assert wrong == {}


def hostile_sessions(*, seed: int, count: int) -> Iterator[Sequence[bytes]]:
    """Yield what agents may say that have lost their mind."""
    draw = random.Random(seed)
    for number in range(count):
        opening = hello(f"mad-{number % 50}", draw.choice(["b", *HOSTILE_TEXTS]))
        said = [opening] if draw.random() < 0.8 else []
        yield [*said, *(_hostile_request(draw) for _ in range(draw.randint(0, 4)))]


def _hostile_request(draw: random.Random) -> bytes:
    message = v1.SessionRequest()
    match draw.randrange(4):
        case 0:
            return draw.randbytes(draw.randint(0, 200))
        case 1:
            data = bytearray(batch(draw.choice([1, 2, 3, 2**40])))
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            return bytes(data)
        case 2:
            fill(message.hello, draw)
        case _:
            fill(message.batch, draw)
            if draw.random() < 0.7:
                message.batch.sequence = draw.randint(1, 9)
                message.batch.send_time_unix_ms = time.time_ns() // 1_000_000
    return message.SerializeToString()


def _check(daemon: DaemonProcess, *, seed: int, count: int) -> Counter[str]:
    """Check that mad agents get a status while others send, and lose nothing."""
    line_count, before_bytes = len(daemon.log), rss_bytes(daemon.pid)

    async def scene() -> Counter[str]:
        async with sending_fleet([daemon.address], 3) as fleet:
            sessions = list(hostile_sessions(seed=seed, count=count))
            ends = Counter(await asyncio.to_thread(_said_all, daemon.address, sessions))
        assert [agent.session_count for agent in fleet.agents] == [1, 1, 1]
        await assert_all_stored_once(daemon.address, fleet.agents)
        return ends

    ends = asyncio.run(scene())
    print(f"{count} sessions: {dict(ends)}")
    assert set(ends) <= PROPER
    assert rss_bytes(daemon.pid) - before_bytes < 50 * 2**20
    records = [json.loads(line) for line in daemon.log[line_count:]]
    assert [record for record in records if record["level"] == "error"] == []
    return ends


def test_hostile_sessions_end_properly_and_hinder_no_other(daemon: DaemonProcess) -> None:
    assert _check(daemon, seed=11, count=200)["INVALID_ARGUMENT"] > 100


@pytest.mark.soak
def test_two_thousand_hostile_sessions_end_properly(daemon: DaemonProcess) -> None:
    _check(daemon, seed=12, count=2_000)
