"""What GPUs are, out of a library whose GPUs are a text file."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.nvml_stub import DRIVER_NOT_LOADED, GPU_IS_LOST, StubGpus

CODE = """
import json
from dataclasses import asdict
from spotwright_agent.collectors.gpu import GpuUnavailableError, read_driver, read_gpus
try:
    print(json.dumps({"gpus": [asdict(g) for g in read_gpus()], **asdict(read_driver())}))
except GpuUnavailableError as error:
    print(json.dumps({"error": str(error)}))
"""


def facts(gpus: StubGpus) -> Any:
    environment = os.environ | gpus.environment
    told = subprocess.check_output([sys.executable, "-c", CODE], env=environment, text=True)
    return json.loads(told)


def test_gpus_and_driver_are_named(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=2)
    gpus.set(gpu=1, name="Tesla T4", pcie_generation=3, pcie_lanes=8, mem_total_bytes=2**34)

    told = facts(gpus)

    assert told["gpus"][1] == {
        "index": 1,
        "name": "Tesla T4",
        "memory_bytes": 2**34,
        "pcie_generation": 3,
        "pcie_lane_count": 8,
        "problem": None,
    }
    assert told["driver_version"] == "550.54.15"


def test_a_lost_gpu_has_a_problem_and_hides_no_other(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=3)
    gpus.set(gpu=1, error=GPU_IS_LOST)

    told = facts(gpus)["gpus"]

    assert [gpu["problem"] for gpu in told] == [None, "GPU is lost", None]
    assert told[1]["name"] is None
    assert told[2]["name"] == "NVIDIA A100-SXM4-40GB"


def test_what_a_virtual_gpu_does_not_tell_is_absent(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=1)
    gpus.set(pcie_generation=None, pcie_lanes=None)

    (told,) = facts(gpus)["gpus"]

    assert (told["pcie_generation"], told["pcie_lane_count"]) == (None, None)
    assert told["memory_bytes"] == 40 * 2**30


@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetCount"])
def test_a_driver_that_is_not_loaded_is_an_error_with_its_reason(tmp_path: Path, call: str) -> None:
    gpus = StubGpus(tmp_path, count=1)
    gpus.host(**{f"error.{call}": DRIVER_NOT_LOADED})

    assert facts(gpus) == {"error": "Driver Not Loaded"}
