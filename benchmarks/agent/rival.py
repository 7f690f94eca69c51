"""What another program takes that reads the same GPUs: nvitop's exporter, at the same rate."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.agent.process_figures import cpu_s, memory_mb
from tests.agent.nvml_stub import StubGpus
from tests.ports import stable_port

_PATIENCE_S = 30.0


def measure_rival(gpus: StubGpus, seconds: float) -> tuple[float, float]:
    """Return its memory in MB and CPU in percent, read once a second as it is meant to be."""
    with _exporter(gpus) as (process, url):
        started_s, before_s = time.monotonic(), cpu_s(process.pid)
        while time.monotonic() < started_s + seconds:
            time.sleep(1.0)
            _read(url)
        share = (cpu_s(process.pid) - before_s) / (time.monotonic() - started_s)
        return memory_mb(process.pid), 100 * share


@contextmanager
def _exporter(gpus: StubGpus) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = stable_port()
    program = str(Path(sys.executable).with_name("nvitop-exporter"))
    with subprocess.Popen(
        [program, "--bind-address", "127.0.0.1", "--port", str(port), "--interval", "1.0"],
        env=os.environ | gpus.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        url = f"http://127.0.0.1:{port}/metrics"
        try:
            _until_it_tells(url)
            yield process, url
        finally:
            process.kill()


def _until_it_tells(url: str) -> None:
    give_up_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            if b"gpu_utilization_Percentage{" in _read(url):
                return
        except OSError:
            pass
        if time.monotonic() > give_up_s:
            raise TimeoutError("nvitop-exporter tells nothing")
        time.sleep(0.2)


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as page:
        return bytes(page.read())
