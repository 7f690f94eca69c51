"""GPUs read through the real bindings out of a library whose GPUs are a text file.

Times between reads are long, so that what the reading itself takes does not show in the rates.
"""

import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.agent.collectors.gpu_reader import gpu_reader
from tests.agent.nvml_stub import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    UNKNOWN,
    StubGpus,
)

FIGURES = {
    "utilization_fraction": 0.9,
    "memory_used_bytes": 30 * 2**30,
    "sm_clock_mhz": 1410,
    "throttle_reasons": 0,
    "uncorrected_error_count": 0,
    "power_w": 300.0,
    "temperature_c": 55,
}
COUNTERS = ("pcie_tx_bytes", "pcie_rx_bytes", "nvlink_tx_kib", "nvlink_rx_kib")


def figures(reading: dict[str, Any]) -> dict[str, Any]:
    return {name: reading[name] for name in FIGURES}


def nothing_but_its_number(reading: dict[str, Any]) -> bool:
    return all(value is None for name, value in reading.items() if name != "gpu_index")


def set_counters(gpus: StubGpus, count: int) -> None:
    gpus.set(**dict.fromkeys(COUNTERS, count))


def test_every_figure_has_our_units(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=8)
    gpus.set(gpu=2, throttle=2**40, ecc=7)
    with gpu_reader(gpus) as reader:
        told = reader.read(0.0)

    assert told["names"] == ["NVIDIA A100-SXM4-40GB"] * 8
    assert [gpu["gpu_index"] for gpu in told["gpus"]] == list(range(8))
    assert figures(told["gpus"][1]) == FIGURES
    assert told["gpus"][2]["throttle_reasons"] == 2**40
    assert told["gpus"][2]["uncorrected_error_count"] == 7


def test_rates_are_of_the_direction_and_the_unit_that_we_say(tmp_path: Path) -> None:
    """Host to GPU is what the GPU receives; NVLink counts KiB."""
    gpus = StubGpus(tmp_path, count=1)
    set_counters(gpus, 0)
    with gpu_reader(gpus) as reader:
        (first,) = reader.gpus(0.0)
        gpus.set(pcie_tx_bytes=10**12, pcie_rx_bytes=2 * 10**12)
        gpus.set(nvlink_tx_kib=10**9, nvlink_rx_kib=2 * 10**9)
        (second,) = reader.gpus(10_000.0)

    assert first["pcie_rx_mbps"] is first["pcie_source"] is first["nvlink_tx_mbps"] is None
    assert second["pcie_tx_mbps"] == pytest.approx(800, rel=0.01)
    assert second["pcie_rx_mbps"] == pytest.approx(1600, rel=0.01)
    assert second["nvlink_tx_mbps"] == pytest.approx(819.2, rel=0.01)
    assert second["nvlink_rx_mbps"] == pytest.approx(1638.4, rel=0.01)
    assert second["pcie_source"] == "counter"


def test_a_counter_that_wraps_goes_on_and_one_that_was_reset_leaves_one_gap(
    tmp_path: Path,
) -> None:
    gpus = StubGpus(tmp_path, count=1)
    set_counters(gpus, 2**48 - 10**9)
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        set_counters(gpus, 10**9)
        (wrapped,) = reader.gpus(1000.0)
        set_counters(gpus, 2**42)
        reader.gpus(10_000.0)
        set_counters(gpus, 0)
        (reset,) = reader.gpus(10_001.0)
        set_counters(gpus, 10**12)
        (after,) = reader.gpus(20_001.0)

    assert wrapped["pcie_rx_mbps"] == pytest.approx(16, rel=0.01)
    assert reset["pcie_rx_mbps"] is None
    assert after["pcie_rx_mbps"] == pytest.approx(800, rel=0.01)


@pytest.mark.parametrize("missing", [{"error.198": NOT_SUPPORTED}, {"field_type": 1}])
def test_without_counters_of_both_directions_pcie_is_sampled(
    tmp_path: Path, missing: dict[str, int]
) -> None:
    """A counter of 32 bits is none: it wraps faster than anyone reads it."""
    gpus = StubGpus(tmp_path, count=1)
    gpus.set(**missing)
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        (told,) = reader.gpus(1.0)

    assert told["pcie_source"] == "sampled"
    assert told["pcie_rx_mbps"] == pytest.approx(12_000)
    assert told["pcie_tx_mbps"] == pytest.approx(4000)
    assert told["nvlink_rx_mbps"] is not None


def test_old_drivers_without_fields_have_the_gpus_sampled_in_turn(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=5, without=("nvmlDeviceGetFieldValues",))
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        seen = [
            [gpu["gpu_index"] for gpu in reader.gpus(float(i)) if gpu["pcie_rx_mbps"]]
            for i in range(1, 6)
        ]

    assert all(len(turn) == 2 for turn in seen)
    assert sorted(chain(*seen)) == sorted([*range(5), *range(5)])


OLD = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetTemperatureV",
    "nvmlEventSetCreate",
)
NEW = ("nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetTemperature")
NONE = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetPcieThroughput")


@pytest.mark.parametrize("without", [OLD, NEW])
def test_old_and_new_drivers_tell_the_same(tmp_path: Path, without: tuple[str, ...]) -> None:
    with gpu_reader(StubGpus(tmp_path, count=1, without=without)) as reader:
        (told,) = reader.gpus(0.0)

    assert figures(told) == FIGURES


def test_figures_that_a_driver_lacks_are_absent_and_the_others_are_there(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=1, without=(*NONE, "nvmlDeviceGetFieldValues"))
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        told = reader.read(1.0)

    absent = {"utilization_fraction": None, "power_w": None}
    assert figures(told["gpus"][0]) == FIGURES | absent
    assert told["gpus"][0]["pcie_source"] is None
    assert told["problem"] == ""


def test_what_is_not_supported_is_not_asked_again_until_the_driver_is_reset(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=1)
    gpus.set(util=None)
    with gpu_reader(gpus) as reader:
        before = reader.gpus(0.0)
        gpus.set(util=50)
        same = reader.gpus(1.0)
        gpus.reset_driver()
        reader.read(2.0)
        after = reader.gpus(100.0)

    told = [gpu["utilization_fraction"] for gpu in (*before, *same, *after)]
    assert told == [None, None, 0.5]


def test_an_error_that_passes_hides_one_figure_once(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=1)
    with gpu_reader(gpus) as reader:
        gpus.set(**{"error.nvmlDeviceGetPowerUsage": 10})
        (without,) = reader.gpus(0.0)
        gpus.set(**{"error.nvmlDeviceGetPowerUsage": None})
        (told,) = reader.gpus(1.0)

    assert without["power_w"] is None
    assert figures(told) == FIGURES


@pytest.mark.parametrize("code", [GPU_IS_LOST, RESET_REQUIRED, UNKNOWN])
def test_one_lost_gpu_does_not_hide_the_others_and_comes_back(tmp_path: Path, code: int) -> None:
    gpus = StubGpus(tmp_path, count=4)
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        gpus.set(gpu=2, error=code)
        lost = reader.read(1.0)
        still_lost = reader.read(3.0)
        gpus.set(gpu=2, error=None)
        waiting = reader.read(4.0)
        back = reader.read(100.0)

    for told in (lost, still_lost, waiting):
        assert nothing_but_its_number(told["gpus"][2])
        assert figures(told["gpus"][3]) == FIGURES
        assert told["problem"].startswith("GPU 2: ")
        assert told["names"] == back["names"] == ["NVIDIA A100-SXM4-40GB"] * 4
    assert figures(back["gpus"][2]) == FIGURES
    assert back["problem"] == ""


def test_a_driver_reset_is_told_and_gpus_are_back_after_a_second(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=2)
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        gpus.reset_driver()
        lost, waiting = reader.read(1.0), reader.read(1.5)
        back = reader.read(2.1)
        (rates, _) = reader.gpus(3.1)

    assert lost["error"] == waiting["error"] == "Unknown Error"
    assert figures(back["gpus"][0]) == FIGURES
    assert back["gpus"][0]["pcie_rx_mbps"] is None, "counters start anew"
    assert rates["pcie_rx_mbps"] is not None


def test_pauses_double_up_to_a_minute(tmp_path: Path) -> None:
    """Only a read that opens NVML anew sees that the driver is back."""
    gpus = StubGpus(tmp_path, count=1)
    gone = {"error.nvmlInitWithFlags": DRIVER_NOT_LOADED}
    gpus.host(**gone)
    tries = [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0, 183.0]
    with gpu_reader(gpus) as reader:
        for now_s in tries:
            gpus.host(**gone)
            assert "error" in reader.read(now_s)
            gpus.host(**dict.fromkeys(gone))
            waits_until = min(2 * now_s + 1, now_s + 60) if now_s else 1.0
            assert "error" in reader.read(waits_until - 0.01), now_s
        assert "gpus" in reader.read(243.0)


def test_all_gpus_lost_is_an_error_that_ends(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=2)
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        gpus.set(error=GPU_IS_LOST)
        lost = reader.read(1.0)
        gpus.set(error=None)
        back = reader.read(61.0)

    assert lost["error"] == "GPU 0: GPU is lost; GPU 1: GPU is lost"
    assert len(back["gpus"]) == 2


def test_gpus_that_come_and_go_are_counted_anew(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=2)
    with gpu_reader(gpus) as reader:
        told = [len(reader.gpus(0.0))]
        for now_s, count in ((1.0, 4), (2.0, 1), (3.0, 0), (4.0, 2)):
            gpus.host(count=count)
            told.append(len(reader.gpus(now_s)))

    assert told == [2, 4, 1, 0, 2]


def test_the_latest_xid_of_a_gpu_stays_even_when_the_gpu_is_lost(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=2)
    with gpu_reader(gpus) as reader:
        before = reader.gpus(0.0)
        gpus.set(gpu=1, xid=31)
        reader.gpus(1.0)
        gpus.set(gpu=1, xid=79, error=GPU_IS_LOST)
        lost = reader.gpus(2.0)
        gpus.set(gpu=1, error=None)
        after = reader.gpus(100.0)

    told = [[gpu["last_xid"] for gpu in gpus] for gpus in (before, lost, after)]
    assert told == [[None, None], [None, 79], [None, 79]]


def test_without_a_driver_it_says_so(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this host has an NVIDIA driver")
    with gpu_reader(None) as reader:
        first, second = reader.read(0.0), reader.read(1.0)

    assert first["error"] == second["error"] == "NVML Shared Library Not Found"


def test_counters_grow_with_the_clock_unless_they_are_set(tmp_path: Path) -> None:
    """The rate that a demonstration asks for is the rate that is read, by a real clock."""
    gpus = StubGpus(tmp_path, count=1)
    with gpu_reader(gpus) as reader:
        started_s = time.monotonic()
        reader.gpus(0.0)
        time.sleep(0.5)
        passed_s = time.monotonic() - started_s
        (told,) = reader.gpus(passed_s)

    assert told["pcie_rx_mbps"] == pytest.approx(12_000, rel=0.5)
    assert told["nvlink_tx_mbps"] / told["pcie_rx_mbps"] == pytest.approx(80 / 12, rel=0.01)


def test_a_gpu_that_answers_slowly_does_not_spoil_the_rates_of_those_after_it(
    tmp_path: Path,
) -> None:
    """Read 0.6 s late but counted as 0.3 s, the rate would be three times too high."""
    gpus = StubGpus(tmp_path, count=2)
    with gpu_reader(gpus) as reader:
        started_s = time.monotonic()
        reader.gpus(0.0)
        time.sleep(0.3)
        gpus.set(gpu=0, **{"delay_ms.nvmlDeviceGetUtilizationRates": 600})
        (_, told) = reader.gpus(time.monotonic() - started_s)

    assert told["pcie_rx_mbps"] == pytest.approx(12_000, rel=0.4)


def test_one_counted_direction_alone_is_no_figure_of_the_bus(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path, count=4)
    gpus.set(**{"error.198": NOT_SUPPORTED})
    with gpu_reader(gpus) as reader:
        reader.gpus(0.0)
        told = reader.gpus(1.0)

    known = [(gpu["pcie_tx_mbps"] is None, gpu["pcie_rx_mbps"] is None) for gpu in told]
    assert sorted(known) == [(False, False)] * 2 + [(True, True)] * 2
