"""`spotwright-agent probe`, between two processes on loopback."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("spotwright-agent"))


def _probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "probe", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def peer() -> Iterator[str]:
    with subprocess.Popen(
        [PROGRAM, "probe", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as listener:
        assert listener.stdout is not None
        yield listener.stdout.readline().split()[-1]
        listener.terminate()
        assert listener.wait(30) == 0


def test_a_person_sees_both_directions_and_the_round_trip(peer: str) -> None:
    done = _probe(peer, "--seconds", "0.3", "--max-mbps", "400")

    assert (done.returncode, done.stderr) == (0, "")
    rates = [float(rate) for rate in re.findall(r"([\d.]+) Gbit/s", done.stdout)]
    assert len(rates) == 2
    assert all(0.2 < rate < 0.45 for rate in rates)
    assert "round trip" in done.stdout
    assert "held down by rate-limit, not by the network" in done.stdout


def test_json_has_the_figures_with_their_units(peer: str) -> None:
    done = _probe(peer, "--seconds", "0.3", "--max-mbps", "100", "--json")

    found = json.loads(done.stdout)
    assert found["problem"] == ""
    assert 50 < found["sent_mbps"] < 115
    assert 0 < found["round_trip_s"] < 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("127.0.0.1:1",), "probe_listen"),
        (("10.255.255.1",), "--insecure"),
        (("nowhere:port",), "nowhere"),
    ],
)
def test_what_cannot_be_measured_ends_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    done = _probe(*arguments)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [(("--seconds", "100"), "0.2 to 10 s"), (("--max-mbps", "nan"), "1 to 400000 Mbit/s")],
)
def test_what_may_not_be_asked_for_is_bad_usage(flags: tuple[str, ...], told: str) -> None:
    done = _probe("127.0.0.1:1", *flags)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert told in done.stderr


@pytest.mark.parametrize("arguments", [(), ("127.0.0.1", "--listen", "127.0.0.1:0")])
def test_either_a_peer_or_a_place_to_listen_is_asked_for(arguments: tuple[str, ...]) -> None:
    assert _probe(*arguments).returncode == 2


def test_without_tls_others_are_not_answered() -> None:
    done = _probe("--listen", "0.0.0.0:0")

    assert done.returncode == 2
    assert "loopback only" in done.stderr
