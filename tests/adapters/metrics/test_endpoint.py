"""`/metrics` over HTTP."""

import http.client
import logging
import socket
import threading
import urllib.request
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from spotwright.adapters.metrics.endpoint import MetricsEndpoint
from spotwright.domain.errors import OutsideWorldError
from tests.adapters.metrics.example_sources import busy_metrics


class Answer(NamedTuple):
    status: int
    content_type: str | None
    length: int
    body: bytes


def ask(port: int, path: str, *, method: str = "GET", host: str = "127.0.0.1") -> Answer:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        length = int(response.headers["Content-Length"])
        return Answer(response.status, response.headers["Content-Type"], length, response.read())
    finally:
        connection.close()


def test_a_scrape_gets_every_metric_as_text() -> None:
    with MetricsEndpoint("127.0.0.1", 0, busy_metrics().render) as endpoint:
        answer = ask(endpoint.port, "/metrics")

    names = {family.name for family in text_string_to_metric_families(answer.body.decode())}
    assert answer.status == 200
    assert str(answer.content_type).startswith("text/plain; version=")
    assert {"spotwright_calls", "spotwright_agent_step_seconds"} <= names


def test_a_question_mark_and_what_follows_it_change_nothing() -> None:
    with MetricsEndpoint("127.0.0.1", 0, lambda: b"x 1\n") as endpoint:
        assert ask(endpoint.port, "/metrics?a=b").body == b"x 1\n"


def test_head_tells_the_length_and_sends_no_body() -> None:
    with MetricsEndpoint("127.0.0.1", 0, lambda: b"x 1\n") as endpoint:
        answer = ask(endpoint.port, "/metrics", method="HEAD")

    assert (answer.status, answer.length, answer.body) == (200, 4, b"")


@pytest.mark.parametrize("path", ["/", "/metrics/x", "/../metrics", "/favicon.ico"])
def test_nothing_else_is_served(path: str) -> None:
    with MetricsEndpoint("127.0.0.1", 0, lambda: b"x 1\n") as endpoint:
        assert ask(endpoint.port, path).status == 404


def test_nothing_can_be_posted() -> None:
    with MetricsEndpoint("127.0.0.1", 0, lambda: b"x 1\n") as endpoint:
        assert ask(endpoint.port, "/metrics", method="POST").status == 501


def test_ipv6_loopback_can_be_listened_on() -> None:
    with MetricsEndpoint("::1", 0, lambda: b"x 1\n") as endpoint:
        assert ask(endpoint.port, "/metrics", host="::1").status == 200


def test_an_address_in_use_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OutsideWorldError, match=rf"127\.0\.0\.1:{port}: .* --metrics HOST:PORT"
        ):
            MetricsEndpoint("127.0.0.1", port, lambda: b"")


def test_a_host_that_does_not_exist_is_told() -> None:
    with pytest.raises(OutsideWorldError, match=r"cannot serve metrics on 192\.0\.2\.1:0"):
        MetricsEndpoint("192.0.2.1", 0, lambda: b"")


def test_closing_frees_the_port_and_ends_every_thread() -> None:
    before = threading.active_count()
    endpoint = MetricsEndpoint("127.0.0.1", 0, lambda: b"x 1\n")
    port = endpoint.port
    ask(port, "/metrics")

    endpoint.close()

    assert threading.active_count() == before
    with MetricsEndpoint("127.0.0.1", port, lambda: b"x 2\n"):
        assert ask(port, "/metrics").body == b"x 2\n"


def test_one_who_connects_and_says_nothing_keeps_nobody_waiting() -> None:
    with (
        MetricsEndpoint("127.0.0.1", 0, lambda: b"x 1\n") as endpoint,
        socket.create_connection(("127.0.0.1", endpoint.port)),
    ):
        assert ask(endpoint.port, "/metrics").status == 200


def test_a_fault_of_ours_is_a_500_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bytes:
        raise ZeroDivisionError

    with MetricsEndpoint("127.0.0.1", 0, broken) as endpoint, caplog.at_level(logging.ERROR):
        answer = ask(endpoint.port, "/metrics")

    assert answer.status == 500
    assert b"ZeroDivision" not in answer.body
    assert "the metrics cannot be rendered" in caplog.text


def test_many_scrapers_at_once_are_all_answered() -> None:
    with MetricsEndpoint("127.0.0.1", 0, busy_metrics().render) as endpoint:
        url = f"http://127.0.0.1:{endpoint.port}/metrics"
        answers: list[int] = []
        threads = [threading.Thread(target=lambda: answers.append(_status(url))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert answers == [200] * 8


def _status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as response:
        return int(response.status)
