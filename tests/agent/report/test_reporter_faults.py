"""The reporter and daemons that misbehave: servers of the wire contract that follow a script."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import (
    TelemetryServiceServicer,
    add_TelemetryServiceServicer_to_server,
)
from spotwright_agent.report.session import SessionPatience
from spotwright_agent.report.spool import Spool
from tests.agent.report.reporting import (
    LIMITS,
    SetClock,
    notice,
    parcel,
    reporting,
    sample,
    until,
)

Script = Callable[[int, Iterator[v1.SessionRequest], Any], Iterator[v1.SessionResponse]]


class _Scripted(TelemetryServiceServicer):
    def __init__(self, script: Script) -> None:
        self._script, self.count = script, 0
        self.boot_ids: list[str] = []  # as told in each session
        self.before_welcome: Callable[[int], None] | None = None

    def Session(self, request_iterator: Any, context: Any) -> Iterator[v1.SessionResponse]:  # noqa: N802
        self.count += 1
        number = self.count
        self.boot_ids.append(next(request_iterator).hello.boot_id)
        if self.before_welcome is not None:
            self.before_welcome(number)
        welcome = v1.Welcome(max_unacked_batches=4, sampling=v1.Sampling(interval_s=1, batch_s=1))
        yield v1.SessionResponse(welcome=welcome)
        yield from self._script(number, request_iterator, context)


@contextmanager
def _scripted(script: Script) -> Iterator[tuple[str, _Scripted]]:
    with ThreadPoolExecutor(16) as threads:
        server, servicer = grpc.server(threads), _Scripted(script)
        add_TelemetryServiceServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}", servicer
        finally:
            server.stop(0).wait()


def _abort(context: Any, code: int, detail: Message) -> None:
    packed = AnyMessage()
    packed.Pack(detail)
    context.abort_with_status(rpc_status.to_status(status_pb2.Status(code=code, details=[packed])))


def _ack(sequence: int) -> v1.SessionResponse:
    return v1.SessionResponse(ack=v1.Ack(sequence=sequence))


def test_a_daemon_that_never_answers_is_left_for_a_new_session(tmp_path: Path) -> None:
    over = threading.Event()
    seen: list[int] = []

    def script(number: int, requests: Any, context: Any) -> Iterator[v1.SessionResponse]:
        for request in requests:
            seen.append(request.batch.sequence)
            if number == 1:
                over.wait(30)  # as when the network swallows everything
                return
            yield _ack(request.batch.sequence)

    patience = SessionPatience(ack_s=0.5, notice_ack_s=0.5, welcome_s=5)
    with _scripted(script) as (address, servicer):
        with reporting(tmp_path, address, patience=patience) as running:
            running.outbox.add_sample(sample(1))
            until(lambda: servicer.count >= 2, "another session")
            running.until_all_acked()
        over.set()
    assert seen[0] == seen[1]  # the same batch under the same number


def test_a_batch_that_the_store_refuses_is_left_out(tmp_path: Path) -> None:
    told: dict[int, int] = {}  # samples dropped, by number
    refused: list[int] = []

    def script(number: int, requests: Any, context: Any) -> Iterator[v1.SessionResponse]:
        for request in requests:
            sequence = request.batch.sequence
            if request.batch.samples and not refused:
                refused.append(sequence)
                info = error_details_pb2.ErrorInfo(
                    reason="BATCH_REFUSED", metadata={"sequence": str(sequence)}
                )
                _abort(context, code_pb2.INVALID_ARGUMENT, info)
            told[sequence] = request.batch.dropped_sample_count
            yield _ack(sequence)

    with _scripted(script) as (address, _), reporting(tmp_path, address) as running:
        running.outbox.add_sample(sample(1))
        until(lambda: refused, "one is refused")
        until(lambda: running.reporter.figures().session_count == 2, "it came back")
        running.outbox.add_sample(sample(2))
        until(lambda: sum(told.values()) == 1, "the loss is told")
        running.until_all_acked()
    assert refused[0] not in told


def test_a_daemon_that_asks_for_time_is_given_it(tmp_path: Path) -> None:
    def script(number: int, requests: Any, context: Any) -> Iterator[v1.SessionResponse]:
        next(requests)
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromSeconds(40)
        _abort(context, code_pb2.RESOURCE_EXHAUSTED, info)
        yield _ack(1)

    with _scripted(script) as (address, servicer), reporting(tmp_path, address) as running:
        running.outbox.add_sample(sample(1))
        until(lambda: "EXHAUSTED" in running.reporter.figures().last_error, "it is told to wait")
        running.outbox.add_sample(sample(2))
        threading.Event().wait(3)
        assert servicer.count == 1


def test_a_renewal_that_is_welcomed_after_the_older_session_ended_is_no_rival(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replaced, ended = threading.Event(), threading.Event()

    def script(number: int, requests: Any, context: Any) -> Iterator[v1.SessionResponse]:
        if number == 1:
            replaced.wait(30)
            context.add_callback(ended.set)
            _abort(
                context, code_pb2.ABORTED, error_details_pb2.ErrorInfo(reason="SESSION_REPLACED")
            )
        for request in requests:
            yield _ack(request.batch.sequence)

    def slow_welcome(number: int) -> None:
        if number == 2:
            replaced.set()
            ended.wait(30)
            time.sleep(0.5)  # the agent hears of the older session's end first

    with _scripted(script) as (address, servicer):
        servicer.before_welcome = slow_welcome
        with reporting(tmp_path, address, patience=SessionPatience(look_s=0.1)) as running:
            running.until_connected()
            running.facts = replace(running.facts, job_id="another")
            until(lambda: running.reporter.figures().session_count == 2, "the renewal is welcome")
            running.outbox.add_sample(sample(1))
            running.until_all_acked()
        assert servicer.count == 2
    assert "another agent" not in caplog.text


def test_a_spool_that_comes_back_before_the_welcome_goes_on_in_its_own_stream(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    state, away = tmp_path / "state", tmp_path / "away"
    old = Spool(state / "spool.db", limits=LIMITS, clock=clock)
    old.put(parcel(1, clock=clock))
    assert old.number_next(notice=False) is not None
    old.close()
    state.rename(away)
    state.write_text("not mounted yet")
    samples: list[tuple[int, int]] = []  # session, and which

    def script(number: int, requests: Any, context: Any) -> Iterator[v1.SessionResponse]:
        for request in requests:
            samples.extend((number, each.memory_used_bytes) for each in request.batch.samples)
            yield _ack(request.batch.sequence)

    with _scripted(script) as (address, servicer):
        connected, back = threading.Event(), threading.Event()

        def slow_welcome(number: int) -> None:
            connected.set()
            back.wait(30)

        servicer.before_welcome = slow_welcome
        with reporting(state, address, clock=clock) as running:
            assert connected.wait(30)
            state.unlink()
            away.rename(state)
            clock.since_boot_ms += 20_000
            running.outbox.add_notice(notice())
            until(lambda: running.spool.problem == "", "the spool is on disk")
            back.set()
            running.until_all_acked()
        assert servicer.boot_ids[-1] == old.boot_id != servicer.boot_ids[0]
        assert samples == [(servicer.count, 1)]
