"""A daemon and real agents with stubbed GPUs, seen as people see them."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spotwright.client import Client
from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.training import StepReporter
from tests.agent.agent_process import AgentProcess, running_agent
from tests.agent.nvml_stub import GPU_IS_LOST, StubGpus
from tests.cli.command import printed_json, spotwright
from tests.cli.live_command import running, wait_for
from tests.cli.test_jobs_of_a_real_daemon import keep_plan
from tests.daemon_process import running_daemon
from tests.e2e.stored_samples import PATIENCE_S, sampled_after, telemetry, until_agent
from tests.fakes.metadata_server import MetadataServer, metadata_server
from tests.ports import stable_port


@dataclass
class Host:
    """One host of the scene."""

    agent: AgentProcess
    gpus: StubGpus
    cloud: MetadataServer
    probe_address: str


@dataclass
class Scene:
    """Three hosts that work for one job."""

    address: str
    job_id: str
    hosts: list[Host]

    @property
    def where(self) -> tuple[str, str]:
        return ("--daemon", self.address)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("live")
    with ExitStack() as stack:
        daemon = stack.enter_context(running_daemon(folder))
        keep_plan(daemon)
        job_id = spotwright("jobs", "start", "plan-1", "--daemon", daemon.address).stdout.strip()
        hosts = [_host(stack, folder / f"gpu-{n}", daemon.address, job_id, n) for n in range(1, 4)]
        with telemetry(daemon.address) as stub:
            for number in range(1, 4):
                until_agent(stub, f"gpu-{number}", _has_rates)
        yield Scene(daemon.address, job_id, hosts)


def _host(stack: ExitStack, folder: Path, address: str, job_id: str, number: int) -> Host:
    folder.mkdir()
    gpus = StubGpus(folder, count=2)
    gpus.set(util=10 * number, pcie_rx_mbps=1000 * number)
    cloud = stack.enter_context(metadata_server("aws"))
    probe_address = f"127.0.0.1:{stable_port()}"
    flags = [
        "--agent-id", f"gpu-{number}", "--daemon", address, "--job-id", job_id,
        "--cloud", "aws", "--metadata-url", cloud.url, "--probe-listen", probe_address,
    ]  # fmt: skip
    agent = stack.enter_context(running_agent(folder, *flags, environment=gpus.environment))
    return Host(agent, gpus, cloud, probe_address)


def _has_rates(agent: v1.Agent) -> bool:
    gpus = agent.latest_sample.gpus
    return bool(gpus) and gpus[0].HasField("pcie_rx_mbps")


def _agents(scene: Scene) -> dict[str, Any]:
    found = printed_json("status", *scene.where)
    return {agent["agent_id"]: agent for agent in found["agents"]}


def _event(scene: Scene, kind: str, agent_id: str) -> dict[str, Any]:
    """Wait for an event of the job."""
    give_up_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_s:
        events = printed_json("jobs", "events", scene.job_id, *scene.where)["events"]
        for event in events:
            if event["kind"] == kind and event["facts"].get("agent_id") == agent_id:
                return dict(event)
        time.sleep(0.1)
    raise AssertionError(f"no {kind} of {agent_id}")


def test_status_shows_pcie_network_gpus_and_steps_of_each_host(scene: Scene) -> None:
    for number, host in enumerate(scene.hosts, start=1):
        reporter = StepReporter(str(host.agent.socket_path), rank=number)
        for step in range(5):
            reporter.step(step, step_s=0.1 * number, samples=32)
        reporter.close()
    with telemetry(scene.address) as stub:
        for number in range(1, 4):
            until_agent(stub, f"gpu-{number}", lambda agent: agent.HasField("latest_step"))

    agents = _agents(scene)
    shown = spotwright("status", *scene.where).stdout

    for number in range(1, 4):
        found = agents[f"gpu-{number}"]
        assert found["gpu_utilization_fraction"] == pytest.approx(0.1 * number)
        assert found["pcie_rx_mbps"] == pytest.approx(2 * 1000 * number, rel=0.05)
        assert found["network_rx_mbps"] is not None
        assert found["step_s"] == pytest.approx(0.1 * number)
        assert found["instance_type"] == "g5.12xlarge"
        assert found["market"] == "spot"
        assert found["gpu_count"] == 2
        assert f"{10 * number}%" in shown


def test_watch_shows_a_notice_as_it_comes_and_the_job_is_warned(scene: Scene) -> None:
    host = scene.hosts[0]
    reporter = StepReporter(str(host.agent.socket_path))
    with running("watch", scene.job_id, *scene.where) as watch:
        wait_for(watch.stdout, "job-created")
        deadline_unix_ms = host.cloud.interrupt(seconds=120)
        wait_for(watch.stdout, "interruption-notice")
        watch.terminate()
        watch.communicate()

    warning = reporter.wait_for_warning(PATIENCE_S)
    assert warning is not None
    assert warning.kind == "interruption"
    assert warning.seconds_left is not None
    assert 0 < warning.seconds_left <= 120
    noticed = json.loads(host.agent.notice_path.read_text())
    assert noticed["deadline_unix_ms"] == deadline_unix_ms
    assert _agents(scene)["gpu-1"]["notice"] == "interruption"

    host.cloud.clear()

    _event(scene, "notice-withdrawn", "gpu-1")
    assert not host.agent.notice_path.exists()
    reporter.close()


def test_a_hint_is_not_a_notice(scene: Scene) -> None:
    scene.hosts[1].cloud.rebalance()

    event = _event(scene, "interruption-hint", "gpu-2")

    assert "may be taken away" in event["text"]
    assert _agents(scene)["gpu-2"]["notice"] == "hint"
    scene.hosts[1].cloud.clear()


def test_a_request_to_save_reaches_the_training_process(scene: Scene) -> None:
    reporter = StepReporter(str(scene.hosts[2].agent.socket_path))
    with telemetry(scene.address) as stub:
        asked = v1.Command(checkpoint=v1.Checkpoint(seconds_left=90.0))
        stub.SendCommand(v1.SendCommandRequest(agent_id="gpu-3", command=asked))

    warning = reporter.wait_for_warning(PATIENCE_S)

    assert warning is not None
    assert warning.kind == "checkpoint"
    reporter.close()


def test_a_probe_that_the_daemon_asks_for_is_logged_with_its_figures(scene: Scene) -> None:
    peer = scene.hosts[1].probe_address
    with telemetry(scene.address) as stub:
        probe = v1.Probe(peer=peer, duration_s=0.5, max_mbps=200)
        stub.SendCommand(v1.SendCommandRequest(agent_id="gpu-3", command=v1.Command(probe=probe)))
        found = until_agent(stub, "gpu-3", lambda agent: agent.HasField("latest_probe"))

    assert found.latest_probe.problem == ""
    assert 100 < found.latest_probe.sent_mbps < 230
    assert found.latest_probe.limited_by in ("rate-limit", "")  # a busy machine sends less
    assert peer in _event(scene, "network-probed", "gpu-3")["text"]


def test_another_rate_of_sampling_is_taken_up(scene: Scene) -> None:
    with telemetry(scene.address) as stub:
        asked = v1.Command(set_sampling=v1.Sampling(interval_s=0.25, batch_s=1.0))
        stub.SendCommand(v1.SendCommandRequest(agent_id="gpu-2", command=asked))

        until_agent(stub, "gpu-2", lambda agent: 0.2 < agent.latest_sample.interval_s < 0.35)


def test_gpus_that_are_lost_are_told_and_the_rest_is_sampled_on(scene: Scene) -> None:
    gpus = scene.hosts[2].gpus
    gpus.set(error=GPU_IS_LOST)
    with telemetry(scene.address) as stub:
        lost = until_agent(stub, "gpu-3", lambda agent: agent.faults)
        assert [fault.collector for fault in lost.faults] == ["gpu"]
        now_s = time.time()
        still = until_agent(stub, "gpu-3", sampled_after(now_s))
        assert still.latest_sample.HasField("cpu_fraction")

        gpus.set(error=None)
        gpus.reset_driver()

        back = until_agent(stub, "gpu-3", lambda agent: not agent.faults and _has_rates(agent))
    assert back.latest_sample.gpus[0].pcie_rx_mbps < 10_000


@pytest.mark.parametrize("weather", ["slow", "garbage", "absent"])
def test_a_metadata_server_in_bad_shape_is_told_and_stops_nothing(
    scene: Scene, weather: str
) -> None:
    cloud = scene.hosts[0].cloud
    if weather == "slow":
        cloud.delay_s = 5.0
    elif weather == "garbage":
        cloud.garbage = b"\x00<html>"
    else:
        cloud.stop()
    with telemetry(scene.address) as stub:
        told = until_agent(stub, "gpu-1", lambda agent: agent.faults)
        assert [fault.collector for fault in told.faults] == ["notices"]
        until_agent(stub, "gpu-1", sampled_after(time.time()))

        cloud.delay_s, cloud.garbage = 0.0, None
        if weather == "absent":
            cloud.start()

        until_agent(stub, "gpu-1", lambda agent: not agent.faults)


def test_the_job_list_of_agents_is_of_that_job(scene: Scene) -> None:
    with Client(scene.address) as client:
        agents = client.list_agents(job_id=scene.job_id).agents

    assert [agent.agent_id for agent in agents] == ["gpu-1", "gpu-2", "gpu-3"]
