"""The feed over HTTP: an emulated EC2, an endpoint that refuses, and one that is not there."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace

import pytest
from moto.server import ThreadedMotoServer

from spotwright.adapters.aws.feed import AwsPriceFeed
from spotwright.domain.errors import OutsideWorldError
from spotwright.usecases.refresh_catalog import refresh_catalog
from tests.adapters.aws.last_snapshot import LAST, NOW
from tests.fakes.memory_snapshot_store import MemorySnapshotStore
from tests.fakes.recorded_aws import RecordedAws, reply


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record botocore's waits between attempts instead of waiting."""
    recorded: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=recorded.append))
    return recorded


class _Throttled(BaseHTTPRequestHandler):
    attempt_count = 0

    def do_POST(self) -> None:
        type(self).attempt_count += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        body = (
            b"<Response><Errors><Error><Code>RequestLimitExceeded</Code>"
            b"<Message>Request limit exceeded.</Message></Error></Errors></Response>"
        )
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def throttled_url() -> Iterator[str]:
    _Throttled.attempt_count = 0
    with HTTPServer(("127.0.0.1", 0), _Throttled) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def closed_port_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_two_regions_of_an_emulated_ec2_are_refreshed_together(
    moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    not_in_moto = {
        "GetProducts": reply("get_products"),
        "ListServiceQuotas": reply("list_service_quotas"),
    }
    notes: list[str] = []
    feed = AwsPriceFeed(
        clock=lambda: NOW, warn=notes.append, open_session=RecordedAws(not_in_moto).open_session
    )

    fresh = feed.fetch(LAST, regions=["us-east-1", "us-west-2", "us-east-1"])

    assert {p.region for p in fresh.prices} == {"us-east-1", "us-west-2"}
    assert {p.zone[:4] for p in fresh.prices} == {"use1", "usw2"}
    offered = {p.zone for p in fresh.prices if p.instance_type == "g5.xlarge"}
    assert {"use1-az1", "use1-az4", "usw2-az1"} <= offered
    new = fresh.instance_types["g5.48xlarge"]
    assert (new.gpu_name, new.gpu_count, new.network_baseline_mbps) == ("A10G", 8, 100_000)
    assert any("GetSpotPlacementScores in us-west-2" in note for note in notes)
    assert any("the catalog has no GPU 'H100'" in note for note in notes)


def test_a_closed_endpoint_leaves_the_last_good_snapshot_untouched(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed_port_url())
    store = MemorySnapshotStore(LAST)
    feed = AwsPriceFeed(clock=lambda: NOW, warn=print)

    with pytest.raises(OutsideWorldError, match="check the network") as caught:
        refresh_catalog(feed, store, regions=["us-east-1", "us-west-2"])

    assert store.save_count == 0
    assert store.snapshot is LAST
    assert "do-not-tell" not in str(caught.value)


def test_throttling_is_retried_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch, waits: list[float], throttled_url: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", throttled_url)
    feed = AwsPriceFeed(clock=lambda: NOW, warn=print)

    with pytest.raises(OutsideWorldError, match="wait a minute, or refresh fewer regions"):
        feed.fetch(LAST, regions=["us-east-1"])

    assert _Throttled.attempt_count == 4
    assert len(waits) == 3


def test_missing_credentials_say_how_to_give_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    feed = AwsPriceFeed(clock=lambda: NOW, warn=print)

    with pytest.raises(OutsideWorldError, match="set AWS_PROFILE, or AWS_ACCESS_KEY_ID"):
        feed.fetch(LAST, regions=["us-east-1"])


def test_a_profile_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    feed = AwsPriceFeed(clock=lambda: NOW, warn=print)

    with pytest.raises(OutsideWorldError, match="nobody"):
        feed.fetch(LAST, regions=["us-east-1"])


def test_a_region_name_that_cannot_be_is_refused() -> None:
    feed = AwsPriceFeed(clock=lambda: NOW, warn=print)

    with pytest.raises(OutsideWorldError, match="us east 1"):
        feed.fetch(LAST, regions=["us east 1"])
