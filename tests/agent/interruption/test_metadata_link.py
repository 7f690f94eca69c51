"""Every wait for a metadata server ends, and every answer is of bounded size."""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from spotwright_agent.interruption.link import MetadataLink
from spotwright_agent.interruption.source import MetadataError
from tests.fakes.metadata_server import MetadataServer, metadata_server
from tests.ports import stable_port

GCP = {"Metadata-Flavor": "Google"}
ZONE = "/computeMetadata/v1/instance/zone"


@contextmanager
def raw_server(answer: bytes) -> Iterator[str]:
    """Answer every connection with these bytes, again and again where they are endless."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, _quietly():
                connection.recv(65_536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


@contextmanager
def _quietly() -> Iterator[None]:
    try:
        yield
    except OSError:
        return


def ask(link: MetadataLink) -> str:
    link.begin()
    return link.ask(ZONE, headers=GCP).text


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with metadata_server("gcp") as running:
        yield running


@pytest.fixture
def link(server: MetadataServer) -> Iterator[MetadataLink]:
    with closing(MetadataLink(server.url, timeout_s=0.5)) as opened:
        yield opened


def test_slow_answer_is_given_up_and_the_next_one_is_its_own(
    server: MetadataServer, link: MetadataLink
) -> None:
    server.delay_s = 1.0
    with pytest.raises(MetadataError, match=r"within 0\.5 s"):
        ask(link)

    server.delay_s = 0.0
    assert ask(link).endswith("us-central1-f")


def test_answer_that_comes_byte_by_byte_is_given_up_in_time(
    server: MetadataServer, link: MetadataLink
) -> None:
    server.drip_s = 0.2  # each byte in time, all of them after 8 s
    start_s = time.monotonic()

    with pytest.raises(MetadataError, match="within"):
        ask(link)

    assert time.monotonic() - start_s < 4  # does not hang


def test_requests_of_one_poll_share_the_time(server: MetadataServer, link: MetadataLink) -> None:
    link.begin()
    link.ask(ZONE, headers=GCP)
    time.sleep(0.5)

    with pytest.raises(MetadataError, match="within"):
        link.ask(ZONE, headers=GCP)


@pytest.mark.parametrize("chunked", [False, True])
def test_answers_are_read_whole_however_they_are_framed(
    server: MetadataServer, link: MetadataLink, chunked: bool
) -> None:
    server.chunked = chunked

    assert [ask(link) for _ in range(3)] == [server.facts["zone"]] * 3
    assert server.connection_count == 1


def test_answer_that_ends_early_is_an_error(server: MetadataServer, link: MetadataLink) -> None:
    server.close_mid_answer = True
    with pytest.raises(MetadataError):
        ask(link)

    server.close_mid_answer = False
    assert ask(link).endswith("us-central1-f")


def test_connection_that_the_server_closed_meanwhile_is_made_anew(
    server: MetadataServer, link: MetadataLink
) -> None:
    server.close_after_answer = True

    assert [ask(link) for _ in range(3)] == [server.facts["zone"]] * 3
    assert server.connection_count == 3


def test_server_that_comes_back_is_asked_again(server: MetadataServer, link: MetadataLink) -> None:
    ask(link)
    server.stop()
    with pytest.raises(MetadataError, match="refused"):
        ask(link)

    server.start()
    assert ask(link).endswith("us-central1-f")


def test_large_answer_is_refused(server: MetadataServer, link: MetadataLink) -> None:
    server.garbage = b"x" * 65_500
    with pytest.raises(MetadataError):
        ask(link)  # with its headers it is over the limit

    server.garbage = b"x" * 60_000
    assert len(ask(link)) == 60_000


_HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0" * 1000,
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 999999 Odd\r\n\r\n",
        _HEAD + b"Content-Length: 5000000000000\r\n\r\nshort",
        _HEAD + b"Content-Length: -1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        _HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\nshort",
        _HEAD + b"X: y\r\n" * 200_000,
        _HEAD + b"X: " + b"y" * 1_000_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 50_000,
        _HEAD + b"\r\n" + b"z" * 10_000_000,
    ],
    ids=[
        "nothing",
        "zeros",
        "ssh",
        "status",
        "length",
        "negative",
        "chunk",
        "headers",
        "header",
        "continue",
        "endless",
    ],
)
def test_server_that_speaks_nonsense_is_an_error_and_takes_no_memory(answer: bytes) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raw_server(answer) as url, closing(MetadataLink(url, timeout_s=1.0)) as link:
        for _ in range(3):
            with pytest.raises(MetadataError) as raised:
                ask(link)
            assert len(str(raised.value)) < 300

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 50_000


def test_proxies_of_the_environment_are_not_asked(
    server: MetadataServer, link: MetadataLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{stable_port()}")

    assert ask(link).endswith("us-central1-f")
