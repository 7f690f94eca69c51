"""A daemon and three agents on this machine, with GPUs, a cloud and training that are stand-ins.

    make demo-agents      # or: .venv/bin/python -m examples.live_agents --seconds 600

The daemon, the agents, the sockets and the files are real. Leave it running and look on from
another terminal: `spotwright status --daemon ADDRESS`, `spotwright watch --daemon ADDRESS`.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from spotwright.client import Client
from spotwright.domain.questions import JobDocument, PlannedFleet
from spotwright_agent.training import StepReporter
from tests.agent.agent_process import AgentProcess, running_agent
from tests.agent.nvml_stub import StubGpus
from tests.daemon_process import running_daemon
from tests.fakes.metadata_server import MetadataServer, metadata_server

_PROGRAM = str(Path(sys.executable).with_name("spotwright"))
_JOB = Path(__file__).with_name("resnet50.yaml")
_HOST_COUNT = 3
_COMPUTE_S = 1.0  # of a step; the plan counts on about 0.6
_OTHER_S = 0.05


def main() -> None:
    """Run it for a while and show what people see."""
    parser = argparse.ArgumentParser(prog="python -m examples.live_agents", description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="how long it runs [90]")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="sw-") as folder, ExitStack() as stack:
        daemon = stack.enter_context(running_daemon(Path(folder)))
        print(f"the daemon listens on {daemon.address}; making the plan of {_JOB.name} ...")
        with Client(daemon.address) as client:
            planned = client.create_plan(JobDocument(text=_JOB.read_text()))
            assert isinstance(planned, PlannedFleet)
            job_id = client.create_job(planned.plan_id).job_id
        worker = planned.plan.prediction.fleet.workers[0].instance_type.name
        stopping = threading.Event()
        stack.callback(stopping.set)
        clouds = [
            _host(stack, Path(folder), f"gpu-{number}", stopping,
                  ["--daemon", daemon.address, "--job-id", job_id], worker)
            for number in range(1, _HOST_COUNT + 1)
        ]  # fmt: skip
        _show(daemon.address, job_id, clouds[0], seconds)


def _host(
    stack: ExitStack, folder: Path, name: str, stopping: threading.Event, flags: list[str],
    instance_type: str,
) -> MetadataServer:  # fmt: skip
    """Start an agent and training beside it; return the cloud that the host is in."""
    own = folder / name
    own.mkdir()
    gpus = StubGpus(own, count=1, wobble=0.1)
    gpus.set(name="Tesla T4", util=96, mem_total_bytes=16 * 2**30, mem_used_bytes=11 * 2**30)
    cloud = stack.enter_context(metadata_server("aws"))
    cloud.facts["instance-type"] = instance_type
    where = ["--agent-id", name, "--cloud", "aws", "--metadata-url", cloud.url]
    agent = stack.enter_context(running_agent(own, *flags, *where, environment=gpus.environment))
    training = threading.Thread(target=_train, args=(agent, stopping), daemon=True)
    training.start()
    stack.callback(training.join)
    stack.callback(stopping.set)
    return cloud


def _train(agent: AgentProcess, stopping: threading.Event) -> None:
    reporter = StepReporter(str(agent.socket_path))
    step, is_warned = 0, False
    while not stopping.wait(_COMPUTE_S + _OTHER_S):
        step += 1
        reporter.step(
            step,
            samples=128,
            compute_s=_COMPUTE_S,
            communication_s=0.8 * _OTHER_S,
            data_wait_s=0.2 * _OTHER_S,
        )
        warning = reporter.warning()
        if not is_warned and warning is not None and warning.kind == "interruption":
            print(f"training on {agent.folder.name}: {warning.seconds_left:.0f} s left, saving\n")
            is_warned = True
    reporter.close()


def _show(address: str, job_id: str, cloud: MetadataServer, seconds: float) -> None:
    where = ("--daemon", address)
    print(f"three agents report to job {job_id}\n")
    end_s = time.monotonic() + seconds
    time.sleep(min(15.0, seconds / 3))
    print("$ spotwright status\n" + _spotwright("status", *where))
    cloud.interrupt(seconds=120)
    print("the cloud of gpu-1 says that it takes the host away in 120 s\n")
    time.sleep(1.0)
    print(f"$ spotwright jobs events {job_id}\n" + _spotwright("jobs", "events", job_id, *where))
    while time.monotonic() < end_s:
        time.sleep(1.0)
    print("$ spotwright status\n" + _spotwright("status", *where))


def _spotwright(*arguments: str) -> str:
    return subprocess.run(
        [_PROGRAM, *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
