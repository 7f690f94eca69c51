"""The agent's own figures, read by what Prometheus' client reads them with."""

import http.client
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as read

from spotwright.adapters.metrics.agent_families import agent_families
from spotwright_agent.metrics import FAMILIES, MetricsEndpoint, exposition, process_figures

EVERY_FIGURE = {
    f"{name}:gpu" if family.label else name: float(at)
    for at, (name, family) in enumerate(FAMILIES.items(), start=1)
}


@contextmanager
def running(figures: Callable[[], Mapping[str, float]], host: str = "127.0.0.1") -> Iterator[int]:
    endpoint = MetricsEndpoint(f"{host}:0", figures=figures)
    stopping = threading.Event()
    thread = threading.Thread(target=endpoint.run, args=(stopping,))
    thread.start()
    try:
        yield endpoint.port
    finally:
        stopping.set()
        thread.join(30)
        assert not thread.is_alive()


def asked(port: int, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def sent(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while arrived := connection.recv(65536):
            answer += arrived
        return answer


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in read(text)
        for sample in family.samples
    }


def test_every_figure_is_read_back_with_its_kind_and_what_it_is() -> None:
    families = list(read(exposition(EVERY_FIGURE)))

    assert len(families) == len(FAMILIES)
    assert all(family.type in ("gauge", "counter") and family.documentation for family in families)
    values = sorted(sample.value for family in families for sample in family.samples)
    assert values == sorted(EVERY_FIGURE.values())
    names = {sample.name for family in families for sample in family.samples}
    assert {name for name in names if name.endswith("_total")} == {
        sample.name for family in families if family.type == "counter" for sample in family.samples
    }


@given(
    collectors=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x85\u2028\u2029")),
        st.floats(allow_nan=False),
        max_size=5,
    )
)
def test_any_collector_and_any_value_are_read_back(collectors: dict[str, float]) -> None:
    text = exposition({f"collector_fault:{name}": v for name, v in collectors.items()})

    name = "spotwright_agent_collector_fault"
    assert parsed(text) == {(name, (("collector", c),)): v for c, v in collectors.items()}


@pytest.mark.parametrize("key", ["no_such", "collector_fault", "spool_bytes:gpu", ""])
def test_a_figure_that_nobody_knows_is_named(key: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(key))):
        exposition({key: 1.0})


def test_names_differ_from_what_the_daemon_tells_of_its_agents() -> None:
    families = agent_families([], now=datetime(2026, 1, 1, tzinfo=UTC), per_gpu=True)
    told = {family.name for family in families}

    assert "spotwright_agent_connected" in told
    assert not told & {family.name for family in read(exposition(EVERY_FIGURE))}


def test_a_scrape_shows_the_figures_of_now_and_the_process_itself() -> None:
    spool = iter([10.0, 20.0])
    with running(lambda: {"spool_bytes": next(spool)}) as port:
        first, second = parsed(asked(port)[1]), parsed(asked(port)[1])

    bytes_of = ("spotwright_agent_spool_bytes", ())
    assert (first[bytes_of], second[bytes_of]) == (10.0, 20.0)
    status = Path("/proc/self/status").read_text()
    resident_bytes = 1024 * int(status.partition("VmRSS:")[2].split()[0])
    memory = second["spotwright_agent_process_resident_memory_bytes", ()]
    assert memory == pytest.approx(resident_bytes, rel=0.2)
    used = os.times()
    cpu_s = second["spotwright_agent_process_cpu_seconds_total", ()]
    assert cpu_s == pytest.approx(used.user + used.system, rel=0.2, abs=0.5)


def test_memory_that_cannot_be_read_is_absent(tmp_path: Path) -> None:
    assert "process_resident_memory_bytes" not in process_figures(tmp_path / "absent")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/metricsx", 404), ("POST", "/metrics", 405),
     ("HEAD", "/metrics", 200), ("GET", "/metrics?name=x", 200)],
)  # fmt: skip
def test_only_reading_the_one_page_is_answered(method: str, path: str, status: int) -> None:
    with running(dict) as port:
        found, text = asked(port, path, method)

    assert found == status
    assert (text == "") == (method == "HEAD")


def test_a_wrong_figure_is_an_error_for_who_asks_and_the_endpoint_lives_on() -> None:
    figures: list[dict[str, float]] = [{"no_such": 1.0}, {"spool_bytes": 1.0}]
    with running(lambda: figures.pop(0)) as port:
        assert asked(port)[0] == 500
        assert asked(port)[0] == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [(b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400), (b"GET /metrics\r\n\r\n", 400),
     (b"\r\n\r\n", 400), (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000, 431),
     (b"GET /" + b"x" * 12_000, 431)],
)  # fmt: skip
def test_garbage_and_what_is_too_large_are_refused(request_bytes: bytes, status: int) -> None:
    with running(dict) as port:
        assert sent(port, request_bytes).startswith(f"HTTP/1.1 {status} ".encode())
        assert asked(port)[0] == 200


def test_clients_that_say_nothing_or_little_at_a_time_only_delay_the_next_one() -> None:
    with running(dict) as port:
        silent = socket.create_connection(("127.0.0.1", port))
        slow = socket.create_connection(("127.0.0.1", port))
        over = threading.Event()

        def trickle() -> None:
            try:
                while not over.wait(0.05):
                    slow.send(b"G")
            except OSError:
                return

        thread = threading.Thread(target=trickle)
        thread.start()
        start_s = time.monotonic()
        try:
            assert asked(port)[0] == 200
        finally:
            over.set()
            thread.join()
            silent.close()
            slow.close()

    assert time.monotonic() - start_s < 25  # it does not hang; a trickle of 8 KiB takes 400 s


def test_a_client_that_is_gone_at_once_harms_nothing() -> None:
    with running(dict) as port:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                )  # closes with a reset
                connection.send(b"GET /met")
        assert asked(port)[0] == 200


def test_a_client_that_reads_nothing_does_not_keep_it_from_ending() -> None:
    many = {f"collector_fault:{at}": math.pi for at in range(100_000)}
    with running(lambda: many) as port:
        deaf = socket.create_connection(("127.0.0.1", port))
        deaf.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        try:
            assert asked(port)[0] == 200
        finally:
            deaf.close()


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        MetricsEndpoint(f"127.0.0.1:{taken.getsockname()[1]}", figures=dict)


def test_it_answers_on_ipv6_too() -> None:
    with running(dict, host="[::1]") as port, socket.create_connection(("::1", port), 30) as asking:
        asking.sendall(b"GET /metrics HTTP/1.0\n\n")
        assert asking.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
