"""A probe over a cable whose rate and delay the kernel sets, so that the right answer is known."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent.probe.network_pair import ADDRESSES, NetworkPair, network_pair
from tests.agent.probe.probe_parts import made_agents

LISTEN = """
import sys, threading
from pathlib import Path
from spotwright_agent.probe.listener import ProbeListener
from spotwright_agent.tls_files import TlsFiles
listener = ProbeListener(sys.argv[1], tls=TlsFiles.of(Path(sys.argv[2]), "gpu-1"))
print("listening", flush=True)
listener.run(threading.Event())
"""
MEASURE = """
import dataclasses, json, sys
from pathlib import Path
from spotwright_agent.probe.measure import measure
from spotwright_agent.tls_files import TlsFiles
found = measure(sys.argv[1], duration_s=3.0, max_mbps=float(sys.argv[3]),
                tls=TlsFiles.of(Path(sys.argv[2]), "gpu-2"))
print(json.dumps(dataclasses.asdict(found)))
"""


@contextmanager
def listening(pair: NetworkPair, folder: Path) -> Iterator[None]:
    command = [sys.executable, "-c", LISTEN, f"{ADDRESSES[0]}:7444", str(folder)]
    inside = ["ip", "netns", "exec", pair.first, *command]
    with subprocess.Popen(inside, stdout=subprocess.PIPE) as listener:
        try:
            assert listener.stdout is not None
            assert listener.stdout.readline() == b"listening\n"
            yield
        finally:
            listener.kill()


def measured(pair: NetworkPair, folder: Path, *, max_mbps: float) -> dict[str, Any]:
    command = [sys.executable, "-c", MEASURE, ADDRESSES[0], str(folder), str(max_mbps)]
    inside = ["ip", "netns", "exec", pair.second, *command]
    done = subprocess.run(inside, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("max_mbps", "right_mbps", "limited_by"), [(10_000.0, 200.0, ""), (80.0, 80.0, "rate-limit")]
)
def test_rate_and_delay_of_the_cable_are_found(
    tmp_path: Path, max_mbps: float, right_mbps: float, limited_by: str
) -> None:
    made_agents(tmp_path, "gpu-1", "gpu-2")
    with network_pair(rate="200mbit", delay_s=0.010) as pair, listening(pair, tmp_path):
        found = measured(pair, tmp_path, max_mbps=max_mbps)

    assert found["problem"] == ""

    assert found["sent_mbps"] == pytest.approx(right_mbps, rel=0.1)
    assert found["received_mbps"] == pytest.approx(right_mbps, rel=0.1)
    assert 0.020 <= found["round_trip_s"] < 0.030
    assert found["limited_by"] == limited_by


def test_a_cable_that_is_cut_is_a_problem(tmp_path: Path) -> None:
    made_agents(tmp_path, "gpu-1", "gpu-2")
    with network_pair(rate="200mbit", delay_s=0.010) as pair, listening(pair, tmp_path):
        inside = ["ip", "netns", "exec", pair.second]
        command = [sys.executable, "-c", MEASURE, ADDRESSES[0], str(tmp_path), "50"]
        with subprocess.Popen([*inside, *command], stdout=subprocess.PIPE) as asks:
            try:
                _wait_for_traffic(pair)
                cut = ["ip", "netns", "exec", pair.first, "ip", "link", "set", pair.first, "down"]
                subprocess.run(cut, check=True)
                assert asks.stdout is not None
                found = json.loads(asks.stdout.read())
            finally:
                asks.kill()

    assert found["problem"]
    assert found["sent_mbps"] is None


def _wait_for_traffic(pair: NetworkPair) -> None:
    """Wait until the probe has sent more than it takes to agree."""
    show = ["ip", "netns", "exec", pair.second, "ip", "-s", "-j", "link", "show", pair.second]
    for _ in range(400):
        told = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)
        if told[0]["stats64"]["tx"]["bytes"] > 500_000:
            return
        time.sleep(0.05)
    pytest.fail("the probe sends nothing")
