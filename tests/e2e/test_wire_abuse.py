"""Connections and messages that no client of ours makes do the daemon no harm."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest

from spotwright.v1 import catalog_pb2, telemetry_pb2
from spotwright.v1.catalog_pb2_grpc import CatalogServiceStub
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import OWN_CONNECTION
from tests.e2e.test_bad_input import rss_bytes

GET_CATALOG = "/spotwright.v1.CatalogService/GetCatalog"
WATCHES = ("/spotwright.v1.TelemetryService/WatchAgents", "/spotwright.v1.JobService/WatchJob")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture(autouse=True)
def unharmed(daemon: DaemonProcess) -> Iterator[None]:
    before_bytes = rss_bytes(daemon.pid)
    yield
    with grpc.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
        answer = CatalogServiceStub(channel).GetGpu(catalog_pb2.GetGpuRequest(name="T4"))
    assert answer.gpu.name == "T4"
    assert rss_bytes(daemon.pid) - before_bytes < 50 * 2**20
    assert [line for line in daemon.log if json.loads(line)["level"] == "error"] == []


def code_of(daemon: DaemonProcess, method: str, request: bytes = b"", **how: object) -> str:
    """Ask with bytes and return the status."""
    with grpc.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
        try:
            channel.unary_unary(method)(request, timeout=20, **how)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


def connected(daemon: DaemonProcess) -> socket.socket:
    host, _, port = daemon.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_a_message_of_three_mebibytes_is_refused(daemon: DaemonProcess) -> None:
    assert code_of(daemon, GET_CATALOG, b"\x0a" * (3 * 2**20)) == "RESOURCE_EXHAUSTED"


def test_a_method_that_nobody_serves_is_unimplemented(daemon: DaemonProcess) -> None:
    assert code_of(daemon, "/spotwright.v1.CatalogService/DeleteEverything") == "UNIMPLEMENTED"
    assert code_of(daemon, "/spotwright.v9.Nothing/Get") == "UNIMPLEMENTED"
    assert code_of(daemon, "/") == "UNIMPLEMENTED"


def test_metadata_beyond_the_limit_is_refused(daemon: DaemonProcess) -> None:
    assert code_of(daemon, GET_CATALOG, metadata=[("x-long", "y" * 20_000)]) == "RESOURCE_EXHAUSTED"


def test_a_complaint_about_a_very_long_name_reaches_a_client_with_usual_limits(
    daemon: DaemonProcess,
) -> None:
    request = catalog_pb2.GetGpuRequest(name="\U0001f600" * 25_000).SerializeToString()

    assert code_of(daemon, "/spotwright.v1.CatalogService/GetGpu", request) == "INVALID_ARGUMENT"


def test_metadata_of_strange_bytes_is_ignored(daemon: DaemonProcess) -> None:
    metadata = [("x-bin", b"\x00\xff\xfe"), ("authorization", "Bearer sw_x_y"), ("x", " ~")]

    assert code_of(daemon, GET_CATALOG, metadata=metadata) == "OK"


@pytest.mark.parametrize("method", WATCHES)
@pytest.mark.parametrize(
    "request_bytes", [b"\xff\xff", b"\x0a\x02\xc3\x28", b"\x15\x00\x00\xc0\x7f"]
)
def test_a_watch_that_cannot_be_read_is_a_bad_request(
    daemon: DaemonProcess, method: str, request_bytes: bytes
) -> None:
    with grpc.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
        call = channel.unary_stream(method)(request_bytes, timeout=20)
        with pytest.raises(grpc.RpcError) as ended:
            next(call)
    assert ended.value.code().name in ("INVALID_ARGUMENT", "NOT_FOUND")


@pytest.mark.parametrize("interval_s", [-1.0, 0.0, float("nan"), float("inf"), 1e30])
def test_a_watch_at_an_impossible_pace_is_a_bad_request(
    daemon: DaemonProcess, interval_s: float
) -> None:
    request = telemetry_pb2.WatchAgentsRequest(interval_s=interval_s).SerializeToString()
    with grpc.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
        call = channel.unary_stream(WATCHES[0])(request, timeout=20)
        with pytest.raises(grpc.RpcError) as ended:
            next(call)
    assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_request_of_http_1_is_sent_away(daemon: DaemonProcess) -> None:
    with connected(daemon) as http:
        http.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while http.recv(4096):
            pass  # whatever it says, it ends the connection


@pytest.mark.parametrize(
    "sent",
    [b"\0" * 1000, _PREFACE + b"\xff" * 1000, _PREFACE + b"\x00\x00\x04\x08\x00" + b"\0" * 99],
)
def test_bytes_that_are_no_http_2_are_sent_away(daemon: DaemonProcess, sent: bytes) -> None:
    with connected(daemon) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        try:
            while raw.recv(4096):
                pass
        except ConnectionResetError:
            pass


def test_two_hundred_connections_that_say_nothing_hinder_nobody(daemon: DaemonProcess) -> None:
    with ExitStack() as open_ones:
        for _ in range(200):
            open_ones.enter_context(connected(daemon))
        assert code_of(daemon, GET_CATALOG) == "OK"


def test_a_thousand_calls_dropped_at_once_hinder_nobody(daemon: DaemonProcess) -> None:
    async def drop() -> None:
        for _ in range(10):
            async with grpc.aio.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
                calls = [channel.unary_unary(GET_CATALOG)(b"", timeout=20) for _ in range(100)]
                await asyncio.sleep(0.01)
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(drop())


def test_calls_beyond_the_rate_are_told_when_to_come_back(daemon: DaemonProcess) -> None:
    with grpc.insecure_channel(daemon.address, options=OWN_CONNECTION) as channel:
        ask = channel.unary_unary("/spotwright.v1.JobService/ListJobs")
        codes = []
        for _ in range(8):  # of 50: a hundred and more at once may be refused as streams
            codes += [call.code().name for call in [ask.future(b"") for _ in range(50)]]

    assert set(codes) == {"OK", "RESOURCE_EXHAUSTED"}
    assert codes.count("OK") >= 200
