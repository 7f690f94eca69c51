"""Samples out of collectors that fail, hang and tell nonsense."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.readings import (
    CollectorError,
    GpuReading,
    HostFigures,
    HostSample,
    PcieSource,
)
from spotwright_agent.sampling import Sampler
from tests.agent.nvml_stub import StubGpus


class Reads:
    """A collector that does what a test says."""

    def __init__(self, name: str, read: Callable[[float], HostFigures], **more: object) -> None:
        self.name, self._read = name, read
        self.__dict__ |= more

    def read(self, now_s: float) -> HostFigures:
        return self._read(now_s)


def fails(error: Exception) -> Callable[[float], HostFigures]:
    def read(now_s: float) -> HostFigures:
        raise error

    return read


def cpu(now_s: float) -> HostFigures:
    return {"cpu_fraction": 0.5}


def sample(sampler: Sampler, now_s: float) -> HostSample:
    return sampler.sample(now_s=now_s, time_unix_ms=1_700_000_000_000)


def until(holds: Callable[[], bool]) -> None:
    """Wait for what must come, but not for ever."""
    give_up_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.005)


def test_a_sample_has_the_figures_of_all_collectors() -> None:
    sampler = Sampler([Reads("host", cpu), Reads("disk", lambda _: {"disk_read_mbps": 3.0})])

    found = sampler.sample(now_s=7.0, time_unix_ms=123)

    assert found.figures == {"cpu_fraction": 0.5, "disk_read_mbps": 3.0}
    assert found.time_unix_ms == 123
    assert dict(sampler.faults) == {}


def test_intervals_are_those_of_the_clock_that_never_jumps() -> None:
    sampler = Sampler([])

    assert [sample(sampler, now_s).interval_s for now_s in (5.0, 6.5, 6.5, 6.0, 9.0)] == [
        0.0, 1.5, 0.0, 0.0, 3.0,
    ]  # fmt: skip


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CollectorError("no such thing"), "no such thing"),
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
        (CollectorError("two\nlines"), "two lines"),
        (CollectorError(""), "not readable"),
    ],
)
def test_a_collector_that_fails_is_told_of_and_hides_no_other(
    error: Exception, told: str, hangs: bool
) -> None:
    sampler = Sampler([Reads("bad", fails(error), may_hang=hangs), Reads("host", cpu)], slow_s=30)

    assert sample(sampler, 1.0).figures == {"cpu_fraction": 0.5}
    assert dict(sampler.faults) == {"bad": told}


def test_a_fault_is_over_when_the_collector_reads_again() -> None:
    lost = fails(CollectorError("lost"))
    sampler = Sampler([Reads("host", lambda now_s: (cpu if now_s == 1 else lost)(now_s))])

    told = []
    for now_s in range(3):
        sample(sampler, now_s)
        told.append(dict(sampler.faults))

    assert told == [{"host": "lost"}, {}, {"host": "lost"}]


def test_a_problem_beside_figures_is_a_fault() -> None:
    sampler = Sampler([Reads("gpu", lambda _: {"gpus": ()}, problem="GPU 3: lost " + "x" * 500)])

    assert sample(sampler, 0.0).figures == {"gpus": ()}
    assert sampler.faults["gpu"].startswith("GPU 3: lost xxx")
    assert len(sampler.faults["gpu"]) < 200


def test_a_collector_that_never_answers_in_time_still_has_figures() -> None:
    may_answer: defaultdict[float, threading.Event] = defaultdict(threading.Event)

    def read(now_s: float) -> HostFigures:
        may_answer[now_s].wait(60)
        return {"disk_read_mbps": now_s}

    sampler = Sampler([Reads("slow", read, may_hang=True), Reads("host", cpu)], slow_s=0.05)
    assert sample(sampler, 1.0).figures == {"cpu_fraction": 0.5}
    may_answer[1.0].set()
    found: list[HostFigures] = []

    def answered() -> bool:
        found.append(sample(sampler, 2.0 + len(found) / 1000).figures)
        return "disk_read_mbps" in found[-1]

    until(answered)
    assert found[-1] == {"cpu_fraction": 0.5, "disk_read_mbps": 1.0}
    assert dict(sampler.faults) == {"slow": "no answer for 1 s"}


def test_a_collector_that_hangs_delays_a_sample_once_and_its_stale_answer_is_thrown_away() -> None:
    go_on, calls = threading.Event(), []

    def read(now_s: float) -> HostFigures:
        calls.append(now_s)
        if now_s == 1.0:
            go_on.wait(60)
        return {"disk_read_mbps": now_s}

    sampler = Sampler([Reads("slow", read, may_hang=True), Reads("host", cpu)], slow_s=0.05)

    assert sample(sampler, 1.0).figures == {"cpu_fraction": 0.5}
    assert sampler.faults["slow"] == "no answer for 1 s"
    for now_s, told in ((2.0, 1), (3.0, 2), (4.0, 2), (5.5, 4), (60.0, 32)):
        assert sample(sampler, now_s).figures == {"cpu_fraction": 0.5}
        assert sampler.faults["slow"] == f"no answer for {told} s"
    assert calls == [1.0], "a collector that hangs is not asked again"
    go_on.set()
    found: list[HostFigures] = []

    def answered() -> bool:
        found.append(sample(sampler, 61.0 + len(found)).figures)
        return "disk_read_mbps" in found[-1]

    until(answered)
    assert found[-1].get("disk_read_mbps") == calls[-1] > 60
    assert dict(sampler.faults) == {}


def test_a_collector_that_hangs_does_not_keep_the_process_alive() -> None:
    code = """
import time
from spotwright_agent.sampling import Sampler
class Stuck:
    name, may_hang = "stuck", True
    def read(self, now_s):
        time.sleep(1000)
sampler = Sampler([Stuck()], slow_s=0.01)
sampler.sample(now_s=0.0, time_unix_ms=0)
print(sampler.faults["stuck"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "no answer for 1 s\n")


NUMBERS = st.floats() | st.integers(min_value=-(2**70), max_value=2**70)
WRONG = (math.nan, math.inf, -math.inf, -1, -0.5, 2**63, 2**64)


@given(value=NUMBERS | st.sampled_from(WRONG))
def test_only_figures_that_the_daemon_takes_are_sent(value: float) -> None:
    gpu = GpuReading(gpu_index=1, power_w=value, utilization_fraction=0.5)
    figures: HostFigures = {"network_rx_mbps": value, "cpu_fraction": 0.5, "gpus": (gpu,)}

    found = sample(Sampler([Reads("all", lambda _: figures)]), 0.0).figures

    fine = math.isfinite(value) and 0 <= value < 2**63
    assert found.get("network_rx_mbps") == (value if fine else None)
    assert found["gpus"][0].power_w == (value if fine else None)
    assert (found["cpu_fraction"], found["gpus"][0].utilization_fraction) == (0.5, 0.5)


def test_an_xid_that_the_wire_has_no_room_for_is_left_out() -> None:
    gpu = GpuReading(gpu_index=0, last_xid=2**31, pcie_source=PcieSource.COUNTER)

    found = sample(Sampler([Reads("gpu", lambda _: {"gpus": (gpu,)})]), 0.0).figures["gpus"]

    assert found == (GpuReading(gpu_index=0, pcie_source=PcieSource.COUNTER),)


HOST = """
import json, sys, time
from pathlib import Path
from spotwright_agent.collectors.all import open_collectors
from spotwright_agent.sampling import Sampler
collectors = open_collectors(sysfs=Path("/sys"), procfs=Path("/proc"))
sampler = Sampler(collectors, slow_s=float(sys.argv[1]))
for _ in sys.stdin:
    figures = sampler.sample(now_s=time.monotonic(), time_unix_ms=0).figures
    told = {"figures": sorted(figures), "gpus": len(figures.get("gpus", ())), **sampler.faults}
    print(json.dumps(told), flush=True)
"""


def test_a_stuck_driver_leaves_the_host_s_own_figures_and_recovers(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=8)
    stuck = "hang.nvmlDeviceGetUtilizationRates"
    with subprocess.Popen(
        [sys.executable, "-c", HOST, "0.5"],
        env=os.environ | gpus.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask() -> dict[str, object]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            told: dict[str, object] = json.loads(process.stdout.readline())
            return told

        until(lambda: ask()["gpus"] == 8)
        gpus.host(**{stuck: 1})
        silent = ask()
        gpus.host(**{stuck: None})
        until(lambda: (told := ask())["gpus"] == 8 and "gpu" not in told)
        process.stdin.close()

    assert silent["gpus"] == 0
    assert str(silent["gpu"]).startswith("no answer for ")
    assert {"memory_used_bytes"} <= set(silent["figures"])  # type: ignore[call-overload]
