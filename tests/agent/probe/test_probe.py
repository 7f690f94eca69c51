"""Probes over loopback, with and without TLS, and what hosts may do to each other."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotwright_agent.probe.errors import ProbeError
from spotwright_agent.probe.listener import UNPROVED_COUNT, ProbeListener
from spotwright_agent.probe.measure import measure
from spotwright_agent.readings import ProbeResult
from spotwright_agent.tls_files import TlsFiles
from tests.agent.probe.probe_parts import listening, made_agents
from tests.ports import stable_port

CONTROL, DATA = b"SWPC1\n", b"SWPD1\n"


def quick(peer: str, *, tls: TlsFiles | None = None, max_mbps: float = 50.0) -> ProbeResult:
    return measure(peer, duration_s=0.3, max_mbps=max_mbps, tls=tls)


def succeeded(result: ProbeResult) -> bool:
    return not result.problem and result.sent_mbps is not None and result.sent_mbps > 0


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> list[TlsFiles]:
    return made_agents(tmp_path_factory.mktemp("tls"), "gpu-1", "gpu-2")


@pytest.fixture
def control() -> Iterator[tuple[str, socket.socket]]:
    """A plain listener, and a connection to it on which a probe was agreed."""
    with listening() as peer, connected(peer) as connection:
        connection.sendall(CONTROL + asking())
        yield peer, connection


def connected(peer: str) -> socket.socket:
    host, port = peer.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def asking(**changed: object) -> bytes:
    asked = {"version": 1, "duration_s": 0.3, "max_mbps": 50.0} | changed
    return json.dumps(asked).encode() + b"\n"


def line(connection: socket.socket) -> dict[str, object]:
    found = b""
    while not found.endswith(b"\n"):
        arrived = connection.recv(1)
        assert arrived, "closed without an answer"
        found += arrived
    message: dict[str, object] = json.loads(found)
    return message


@pytest.mark.parametrize("max_mbps", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("duration_s", [0.2, 1.0])
def test_the_limit_is_never_exceeded_and_is_reached(max_mbps: float, duration_s: float) -> None:
    slower = []
    with listening() as peer:
        for _ in range(5):  # a machine that is busy with something else may send less
            found = measure(peer, duration_s=duration_s, max_mbps=max_mbps, tls=None)
            assert found.problem == ""
            assert found.sent_mbps is not None
            assert found.received_mbps is not None
            assert max(found.sent_mbps, found.received_mbps) <= 1.1 * max_mbps
            slower.append(min(found.sent_mbps, found.received_mbps))
            if slower[-1] >= 0.95 * max_mbps:
                assert found.limited_by == "rate-limit"
                break

    assert max(slower) >= 0.9 * max_mbps


def test_a_result_says_whom_it_is_about_and_when() -> None:
    with listening() as peer:
        found = measure(peer, duration_s=0.2, max_mbps=5.0, tls=None, command_id="c7")

    assert (found.peer, found.command_id, found.problem) == (peer, "c7", "")
    assert abs(found.time_unix_ms / 1000 - time.time()) < 60
    assert found.round_trip_s is not None
    assert 0 < found.round_trip_s < 1


def test_the_interface_counts_at_least_what_a_probe_says() -> None:
    counter = Path("/sys/class/net/lo/statistics/tx_bytes")
    with listening() as peer:
        before = int(counter.read_text())
        found = measure(peer, duration_s=1.0, max_mbps=800.0, tls=None)
        crossed_bytes = int(counter.read_text()) - before

    assert found.sent_mbps is not None
    assert found.received_mbps is not None
    said_bytes = 0.9 * (found.sent_mbps + found.received_mbps) * 1e6 / 8
    assert crossed_bytes >= said_bytes


def test_without_a_limit_that_matters_loopback_is_fast_and_the_cpu_is_named() -> None:
    with listening() as peer:
        found = measure(peer, duration_s=1.0, max_mbps=400_000.0, tls=None)

    assert found.problem == ""
    assert found.sent_mbps is not None
    assert found.sent_mbps > 500
    assert found.limited_by in ("cpu", "")  # both ends share one interpreter here


def test_two_agents_of_one_authority_measure(agents: list[TlsFiles]) -> None:
    with listening(agents[0]) as peer:
        assert succeeded(quick(peer, tls=agents[1]))
        assert succeeded(quick(peer, tls=agents[1]))


def test_it_listens_on_all_addresses_with_tls(agents: list[TlsFiles]) -> None:
    with listening(agents[0], address="0.0.0.0:0") as peer:
        assert succeeded(quick(peer, tls=agents[1]))


def test_an_agent_of_another_authority_is_refused(agents: list[TlsFiles], tmp_path: Path) -> None:
    (foreign,) = made_agents(tmp_path, "gpu-2")
    with listening(agents[0]) as peer:
        found = quick(peer, tls=foreign)
        assert "TLS" in found.problem
        assert succeeded(quick(peer, tls=agents[1]))


def mixed(trusts: TlsFiles, shows: TlsFiles) -> TlsFiles:
    return TlsFiles(trusts.authority, shows.certificate, shows.key)


def test_who_asks_refuses_a_listener_of_another_authority(
    agents: list[TlsFiles], tmp_path: Path
) -> None:
    """The listener trusts everybody's authority; who asks does not trust the listener's."""
    (foreign,) = made_agents(tmp_path, "gpu-1")
    with listening(mixed(agents[0], foreign)) as peer:
        found = quick(peer, tls=agents[1])

    assert "TLS" in found.problem
    assert found.sent_mbps is None


@pytest.mark.parametrize("kind", ["client", "server"])
@pytest.mark.parametrize("who", ["asks", "listens"])
def test_only_certificates_of_agents_are_accepted(
    agents: list[TlsFiles], kind: str, who: str
) -> None:
    folder = agents[0].authority.parent
    other = TlsFiles(agents[0].authority, folder / f"{kind}.crt", folder / f"{kind}.key")
    listens, asks = (agents[0], other) if who == "asks" else (other, agents[1])
    with listening(listens) as peer:
        found = quick(peer, tls=asks)

    assert found.problem
    assert found.sent_mbps is None


def test_no_tls_and_tls_do_not_meet(agents: list[TlsFiles]) -> None:
    with listening(agents[0]) as peer:
        assert quick(peer).problem
    with listening() as peer:
        assert "TLS" in quick(peer, tls=agents[0]).problem


def test_certificates_that_are_not_there_are_named(agents: list[TlsFiles], tmp_path: Path) -> None:
    with listening(agents[0]) as peer:
        found = quick(peer, tls=TlsFiles.of(tmp_path, "gpu-9"))

    assert "gpu-9.crt" in found.problem


def test_without_tls_only_loopback_is_probed_and_listened_on() -> None:
    assert "without TLS" in quick("192.0.2.1:7444").problem
    with pytest.raises(ProbeError, match="without TLS"):
        ProbeListener("0.0.0.0:0", tls=None)
    ProbeListener("0.0.0.0:0", tls=None, insecure=True).close()


@pytest.mark.parametrize(
    ("duration_s", "max_mbps"),
    [(0.1, 50), (10.1, 50), (float("nan"), 50), (-1, 50), (1, 0.5), (1, 400_001),
     (1, float("nan")), (1, float("inf"))],
)  # fmt: skip
def test_terms_out_of_bounds_are_refused_by_both_ends(duration_s: float, max_mbps: float) -> None:
    told = measure("127.0.0.1:1", duration_s=duration_s, max_mbps=max_mbps, tls=None)
    assert told.problem.startswith("a probe ")
    with listening() as peer, connected(peer) as connection:
        connection.sendall(CONTROL + asking(duration_s=duration_s, max_mbps=max_mbps))
        assert "problem" in line(connection)


@pytest.mark.parametrize("peer", ["", ":", "host:", ":7444", "h:99999", "[::1", "[::1]x", "a\0b",
                                  "no-such-host.invalid", "a..b", "h:-1", "x" * 300])  # fmt: skip
def test_an_address_that_is_none_is_a_problem(peer: str) -> None:
    assert quick(peer).problem


def test_nobody_listens_is_a_problem() -> None:
    assert "refused" in quick(f"127.0.0.1:{stable_port()}").problem


def test_a_second_probe_at_the_same_time_hears_busy() -> None:
    with listening() as peer:
        first: list[ProbeResult] = []
        running = threading.Thread(
            target=lambda: first.append(measure(peer, duration_s=2, max_mbps=5, tls=None))
        )
        running.start()
        time.sleep(0.5)
        second = quick(peer)
        running.join()

    assert "BUSY" in second.problem
    assert succeeded(first[0])


def test_a_wrong_token_gets_nothing_and_disturbs_nothing(
    control: tuple[str, socket.socket],
) -> None:
    peer, connection = control
    token = bytes.fromhex(str(line(connection)["token"]))
    with connected(peer) as wrong:
        wrong.sendall(DATA + bytes(32))
        assert wrong.recv(1) == b""
    with connected(peer) as right:
        right.sendall(DATA + token + b"ping")
        assert right.recv(4) == b"ping"


def test_a_token_is_worth_nothing_after_its_probe(control: tuple[str, socket.socket]) -> None:
    peer, connection = control
    token = bytes.fromhex(str(line(connection)["token"]))
    connection.close()
    for late in itertools.count():
        with connected(peer) as data:
            data.sendall(DATA + token)
            data.settimeout(10)
            if data.recv(1) == b"":
                break
        assert late < 3
    with connected(peer) as again:
        again.sendall(CONTROL + asking())
        assert line(again).get("token") != token.hex()


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(500), CONTROL + b"[" * 600,
     CONTROL + b"null\n", CONTROL + b"\xff\xfe\n", CONTROL + b'{"version": 2}\n',
     CONTROL + b'{"version": 1, "duration_s": "1"}\n', DATA + b"short", CONTROL],
)  # fmt: skip
def test_garbage_does_not_keep_others_from_measuring(garbage: bytes) -> None:
    with listening() as peer, connected(peer) as connection:
        connection.sendall(garbage)
        assert succeeded(quick(peer))


def test_many_connections_that_say_nothing_keep_nobody_out(agents: list[TlsFiles]) -> None:
    with listening(agents[0]) as peer:
        silent = [connected(peer) for _ in range(3 * UNPROVED_COUNT)]
        for half in silent[::2]:
            half.sendall(CONTROL + b"\x16\x03\x01\x02")
        assert succeeded(quick(peer, tls=agents[1]))
        assert silent[0].recv(1) == b""  # the oldest had to go
        for connection in silent:
            connection.close()


def test_a_peer_that_says_nothing_is_waited_for_but_not_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        found = quick(f"127.0.0.1:{mute.getsockname()[1]}")

    assert "waited too long" in found.problem


@pytest.mark.parametrize(
    "answer",
    [b"\n", b"{}\n", b'{"token": "zz"}\n', b'{"token": "00"}\n', b"x" * 5000, b"[]\n", b"",
     b'{"problem": "no\\u001b[2J"}\n'],
)  # fmt: skip
def test_a_peer_that_answers_garbage_is_a_problem(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        found = quick(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()

    assert found.problem
    assert found.problem.isprintable()


LISTENER = """
import sys, threading
from spotwright_agent.probe.listener import ProbeListener
listener = ProbeListener("127.0.0.1:0", tls=None)
print(listener.port, flush=True)
listener.run(threading.Event())
"""


@pytest.mark.parametrize(
    ("how", "after_s"), [(signal.SIGKILL, 0.7), (signal.SIGKILL, 2.5), (signal.SIGSTOP, 0.7)]
)
def test_a_peer_that_dies_or_freezes_midway_is_a_problem(
    how: signal.Signals, after_s: float
) -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            port = int(other.stdout.readline())
            timer = threading.Timer(after_s, os.kill, (other.pid, how))
            timer.start()
            found = measure(f"127.0.0.1:{port}", duration_s=2.0, max_mbps=100.0, tls=None)
            timer.join()
        finally:
            other.kill()

    assert found.problem
    assert found.sent_mbps is None


def test_who_asks_may_vanish_and_the_next_one_is_answered() -> None:
    with listening() as peer:
        ask = f"""
from spotwright_agent.probe.measure import measure
measure({peer!r}, duration_s=10.0, max_mbps=100.0, tls=None)
"""
        with subprocess.Popen([sys.executable, "-c", ask]) as asks:
            time.sleep(1.5)
            asks.kill()
        found = quick(peer)
        for _ in range(20):
            if succeeded(found):
                break
            time.sleep(0.5)
            found = quick(peer)

    assert succeeded(found)


def test_a_probe_stops_when_asked_to() -> None:
    stopping = threading.Event()
    threading.Timer(0.5, stopping.set).start()
    start_s = time.monotonic()
    with listening() as peer:
        found = measure(peer, duration_s=10.0, max_mbps=50.0, tls=None, stopping=stopping)

    assert "stopped" in found.problem
    assert time.monotonic() - start_s < 9  # it does not wait for its end


def test_a_listener_that_ends_ends_its_probe() -> None:
    listener = ProbeListener("127.0.0.1:0", tls=None)
    stopping = threading.Event()
    threading.Timer(1.0, stopping.set).start()
    running = threading.Thread(target=listener.run, args=(stopping,))
    running.start()
    found = measure(f"127.0.0.1:{listener.port}", duration_s=10.0, max_mbps=50.0, tls=None)
    running.join()

    assert found.problem


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        ProbeListener(f"127.0.0.1:{taken.getsockname()[1]}", tls=None)
