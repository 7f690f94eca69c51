"""A real agent whose daemon goes away: nothing is lost, nothing is stored twice."""

import random
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.agent.agent_process import running_agent
from tests.agent.nvml_stub import StubGpus
from tests.daemon_process import running_daemon
from tests.e2e.outages import GPU_COUNT, Endured, endure
from tests.e2e.stored_samples import sampled_after, stored_samples, telemetry, until_agent


def _assert_nothing_lost(endured: Endured) -> None:
    assert endured.gaps == []
    assert endured.dropped_count == 0
    first, last = endured.samples[0].time_unix_ms, endured.samples[-1].time_unix_ms
    assert first < (endured.started_unix_s + 20) * 1000
    assert last > endured.ended_unix_s * 1000
    assert all(len(sample.gpus) == GPU_COUNT for sample in endured.samples[1:])
    assert not any("Traceback" in line for line in endured.agent_log)


@pytest.mark.timeout(300)
def test_nothing_is_lost_over_restarts_and_an_outage_of_half_a_minute(tmp_path: Path) -> None:
    _assert_nothing_lost(endure(tmp_path, restart_count=4, outage_s=30))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nothing_is_lost_over_20_restarts_and_an_outage_of_half_an_hour(tmp_path: Path) -> None:
    _assert_nothing_lost(endure(tmp_path, restart_count=20, outage_s=1800))


@pytest.mark.timeout(300)
def test_an_agent_killed_again_and_again_stores_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "daemon").mkdir()
    gpus = StubGpus(tmp_path, count=2)
    pick = random.Random(7)
    with (
        running_daemon(tmp_path / "daemon") as daemon,
        running_agent(
            tmp_path / "agent", "--agent-id", "gpu-1", "--daemon", daemon.address,
            environment=gpus.environment,
        ) as agent,
        telemetry(daemon.address) as stub,
    ):  # fmt: skip
        for _ in range(5):
            time.sleep(pick.uniform(2.0, 7.0))
            agent.kill()
            killed_s = time.time()
            agent.start()
            until_agent(stub, "gpu-1", sampled_after(killed_s))
        samples = stored_samples(stub, "gpu-1")

    times_ms = [sample.time_unix_ms for sample in samples]
    # A batch that was being gathered goes with its agent; whatever was cut is there, and once.
    apart_ms = [after - before for before, after in pairwise(times_ms)]
    assert min(apart_ms) > 100
    assert max(apart_ms) < 20_000
