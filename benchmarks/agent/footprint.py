"""What an agent takes of its host, and how soon it tells anything."""

import statistics
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.agent.measured_host import GPU_COUNT, MeasuredHost, measured_host, served_daemon
from benchmarks.agent.process_figures import cpu_s, memory_mb
from benchmarks.agent.rival import measure_rival
from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from spotwright.client import Client
from spotwright_agent.training import StepReporter

_MEMORY_MB, _CPU_PERCENT, _FIRST_SAMPLE_S = 64.0, 1.0, 2.0
_SETTLE_S = 10.0
_STEP_S = 0.5  # eight training processes that step twice a second
_HEADER = ("figure", "found", "target", "verdict")


def print_footprint(*, quick: bool) -> None:
    """Print memory and CPU at 1 Hz with eight GPUs, a cloud to watch and training beside it."""
    measured_s = 20.0 if quick else 180.0
    with (
        tempfile.TemporaryDirectory(prefix="sw-") as folder,
        served_daemon(Path(folder)) as (daemon, client),
        measured_host(Path(folder) / "host", "gpu-1", daemon) as host,
    ):
        host.agent.start()
        _until_seen(client, "gpu-1")
        idle = _measured(host, measured_s)
        with_steps = _measured_with_steps(host, measured_s)
        host.agent.stop()
        rival = measure_rival(host.gpus, measured_s)
    lines = [
        ("RSS MB", f"{idle[0]:.1f}", *against(idle[0], _MEMORY_MB)),
        ("CPU % of a core", f"{idle[1]:.2f}", *against(idle[1], _CPU_PERCENT)),
        ("CPU s an hour", f"{idle[1] * 36:.1f}", *against(idle[1] * 36, _CPU_PERCENT * 36)),
        ("RSS MB, 16 steps a second", f"{with_steps[0]:.1f}", *against(with_steps[0], _MEMORY_MB)),
        ("CPU %, 16 steps a second", f"{with_steps[1]:.2f}", *against(with_steps[1], _CPU_PERCENT)),
        (
            "RSS MB, nvitop-exporter, GPUs only",
            f"{rival[0]:.1f}",
            "-",
            _ratio(idle[0], rival[0]),
        ),
        ("CPU %, nvitop-exporter, GPUs only", f"{rival[1]:.2f}", "-", _ratio(idle[1], rival[1])),
    ]
    what = f"An agent at 1 Hz with {GPU_COUNT} stubbed GPUs, notices watched, {measured_s:.0f} s"
    print_table(what, _HEADER, lines)


def print_start(*, quick: bool) -> None:
    """Print how long after its start an agent's first sample is with the daemon."""
    rounds = 3 if quick else 10
    took_s = []
    with (
        tempfile.TemporaryDirectory(prefix="sw-") as folder,
        served_daemon(Path(folder)) as (daemon, client),
    ):
        for number in range(rounds):
            name = f"gpu-{number}"
            with measured_host(Path(folder) / name, name, daemon) as host:
                started_s = time.monotonic()
                host.agent.start()
                _until_seen(client, name)
                took_s.append(time.monotonic() - started_s)
    lines = [
        ("median s", f"{statistics.median(took_s):.2f}", "-", "-"),
        ("worst s", f"{max(took_s):.2f}", *against(max(took_s), _FIRST_SAMPLE_S)),
    ]
    print_table(f"Start to the first sample at the daemon, {rounds} times", _HEADER, lines)


def _ratio(ours: float, theirs: float) -> str:
    return f"ours is x{ours / theirs:.1f}"


def _until_seen(client: Client, name: str) -> None:
    give_up_s = time.monotonic() + 60.0
    while time.monotonic() < give_up_s:
        agents = client.list_agents(page_size=100).agents
        if any(a.agent_id == name and a.gpu_utilization_fraction is not None for a in agents):
            return
        time.sleep(0.02)
    raise TimeoutError(f"{name} told nothing")


def _measured(host: MeasuredHost, measured_s: float) -> tuple[float, float]:
    """Return memory in MB and CPU in percent."""
    time.sleep(_SETTLE_S)
    started_s, before_s = time.monotonic(), cpu_s(host.agent.pid)
    time.sleep(measured_s)
    share = (cpu_s(host.agent.pid) - before_s) / (time.monotonic() - started_s)
    return memory_mb(host.agent.pid), 100 * share


def _measured_with_steps(host: MeasuredHost, measured_s: float) -> tuple[float, float]:
    stopping = threading.Event()
    training = threading.Thread(target=_train, args=(str(host.agent.socket_path), stopping))
    training.start()
    try:
        return _measured(host, measured_s)
    finally:
        stopping.set()
        training.join()


def _train(path: str, stopping: threading.Event) -> None:
    reporters = [StepReporter(path, rank=rank) for rank in range(GPU_COUNT)]
    step = 0
    while not stopping.wait(_STEP_S):
        step += 1
        for reporter in reporters:
            reporter.step(step, step_s=_STEP_S, samples=32, data_wait_s=0.01, compute_s=0.4)
    for reporter in reporters:
        reporter.close()
