"""A process that reads stubbed GPUs when it is told to, and tells what it found."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.agent.nvml_stub import StubGpus

_CODE = """
import json, sys
from dataclasses import asdict
from spotwright_agent.collectors.gpu import GpuCollector
from spotwright_agent.readings import CollectorError
collector = GpuCollector()
for line in sys.stdin:
    try:
        told = {"gpus": [asdict(gpu) for gpu in collector.read(float(line))["gpus"]]}
    except CollectorError as error:
        told = {"error": str(error)}
    told |= {"problem": collector.problem, "names": collector.names}
    print(json.dumps(told), flush=True)
"""


class GpuReader:
    """A collector in another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def read(self, now_s: float) -> dict[str, Any]:
        """Return what the collector tells at a time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{now_s}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def gpus(self, now_s: float) -> list[dict[str, Any]]:
        """Return the readings; there must be some."""
        return self.read(now_s)["gpus"]


@contextmanager
def gpu_reader(gpus: StubGpus | None) -> Iterator[GpuReader]:
    """Run a collector; without GPUs, without a driver."""
    environment = os.environ | (gpus.environment if gpus else {})
    with subprocess.Popen(
        [sys.executable, "-c", _CODE],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield GpuReader(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.kill()
