"""A real agent whose daemon goes away: nothing is lost, nothing is stored twice."""

import random
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.agent.agent_process import running_agent
from tests.agent.nvml_stub import StubGpus
from tests.daemon_process import running_daemon
from tests.e2e.stored_samples import (
    gaps,
    sampled_after,
    stored_samples,
    telemetry,
    until_agent,
)


def _assert_nothing_lost(folder: Path, *, restart_count: int, outage_s: float) -> None:
    gpus = StubGpus(folder, count=2)
    with (
        running_daemon(folder / "daemon", "--raw-window", "4h") as daemon,
        running_agent(
            folder / "agent", "--agent-id", "gpu-1", "--daemon", daemon.address,
            environment=gpus.environment,
        ) as agent,
    ):  # fmt: skip
        started_s = time.time()
        with telemetry(daemon.address) as stub:
            until_agent(stub, "gpu-1", lambda agent: agent.last_sequence)
        pick = random.Random(7)
        for restart in range(restart_count):
            daemon.kill() if restart % 2 else daemon.stop()
            time.sleep(pick.uniform(0.0, 1.0))
            daemon.start()
            time.sleep(pick.uniform(0.5, 2.0))
        daemon.stop()
        time.sleep(outage_s)
        daemon.start()
        ended_s = time.time()
        with telemetry(daemon.address) as stub:
            until_agent(stub, "gpu-1", sampled_after(ended_s))
            samples = stored_samples(stub, "gpu-1")
            found = until_agent(stub, "gpu-1", lambda _: True)
    assert gaps(samples) == []
    assert found.dropped_sample_count == 0
    assert samples[0].time_unix_ms < (started_s + 20) * 1000
    assert samples[-1].time_unix_ms > ended_s * 1000
    assert all(len(sample.gpus) == 2 for sample in samples[1:])
    assert agent.log == [] or not any("Traceback" in line for line in agent.log)


@pytest.mark.timeout(300)
def test_nothing_is_lost_over_restarts_and_an_outage_of_half_a_minute(tmp_path: Path) -> None:
    (tmp_path / "daemon").mkdir()
    _assert_nothing_lost(tmp_path, restart_count=4, outage_s=30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nothing_is_lost_over_20_restarts_and_an_outage_of_half_an_hour(tmp_path: Path) -> None:
    (tmp_path / "daemon").mkdir()
    _assert_nothing_lost(tmp_path, restart_count=20, outage_s=1800)


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
