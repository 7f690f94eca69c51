"""`spotwright-agent check --hardware`: whether a real GPU host tells plausible figures.

The agent is tested against a stand-in for NVML, which shows that calls, units and errors are
handled, but not that a driver behaves so. This is the test for that: run it once on each kind of
host before figures of it are trusted.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spotwright_agent.readings import CollectorError, GpuReading, PcieSource

_MOST_PCIE_MBPS = 1_100_000.0  # PCIe 6.0 x16 has 10^6 Mbit/s
_SLOW_SAMPLE_S = 0.5  # of a sample each second
_AGREE_FRACTION = 0.5
_BUSY_MBPS = 1_000.0  # below it, 20 ms of traffic say nothing about a second
_COPIED_BYTES = 256 * 2**20


def check_hardware(*, seconds: int) -> dict[str, Any]:
    """Watch the GPUs and return what was seen and what is off."""
    from spotwright_agent.check.command import within  # noqa: PLC0415

    watch = _Watch()
    with _load() as load:
        try:
            within(10.0 * seconds, lambda: watch.run(seconds))
        except (CollectorError, TimeoutError) as error:
            watch.problems.append(f"GPUs cannot be watched: {error}")
    return {
        "sample_count": watch.sample_count,
        "load": load,
        "slowest_sample_s": round(watch.slowest_s, 4),
        "notes": watch.notes,
        "problems": [*watch.problems, *watch.judge(loaded=load.startswith("copies"))],
    }


class _Watch:
    """What each GPU told, and how the ways to measure PCIe compare."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.sample_count, self.slowest_s = 0, 0.0
        self._readings: dict[int, list[GpuReading]] = {}
        self._sampled_mbps: dict[int, list[float]] = {}

    def run(self, seconds: int) -> None:
        """Read every second; the first reading has no rates."""
        from spotwright_agent.collectors.gpu import GpuCollector  # noqa: PLC0415

        collector = GpuCollector()
        try:
            for _ in range(seconds + 1):
                started_s = time.monotonic()
                gpus = collector.read(started_s).get("gpus", ())
                self.slowest_s = max(self.slowest_s, time.monotonic() - started_s)
                if collector.problem and collector.problem not in self.problems:
                    self.problems.append(collector.problem)
                self._note(gpus)
                time.sleep(max(0.0, 1.0 - (time.monotonic() - started_s)))
        finally:
            collector.close()

    def _note(self, gpus: tuple[GpuReading, ...]) -> None:
        self.sample_count += 1
        for gpu in gpus:
            self._readings.setdefault(gpu.gpu_index, []).append(gpu)
            if gpu.pcie_source is PcieSource.COUNTER and (rate := _sampled_rx_mbps(gpu)):
                self._sampled_mbps.setdefault(gpu.gpu_index, []).append(rate)

    def judge(self, *, loaded: bool) -> Iterator[str]:
        """Tell what cannot be right."""
        if not self._readings and not self.problems:
            yield "no GPU was seen"
        if self.slowest_s > _SLOW_SAMPLE_S:
            yield f"a sample took {self.slowest_s:.2f} s: the driver is slow"
        for index, readings in sorted(self._readings.items()):
            for problem in self._judge_gpu(readings, loaded=loaded):
                yield f"GPU {index}: {problem}"

    def _judge_gpu(self, readings: list[GpuReading], *, loaded: bool) -> Iterator[str]:
        used = [each.utilization_fraction for each in readings]
        if all(value is None for value in used):
            yield "it never told its utilisation"
        if any(value is not None and not 0 <= value <= 1 for value in used):
            yield "its utilisation is outside 0 to 1"
        rates = [each.pcie_rx_mbps for each in readings if each.pcie_rx_mbps is not None]
        if not rates:
            yield "it never told its PCIe traffic"
            return
        if max(rates) > _MOST_PCIE_MBPS:
            yield f"PCIe traffic of {max(rates):.0f} Mbit/s is more than the bus has"
        if loaded and max(rates) < _BUSY_MBPS:
            yield "data was copied to it, but its PCIe traffic did not rise"
        yield from self._compare(readings[0].gpu_index, sum(rates) / len(rates))

    def _compare(self, index: int, counted_mbps: float) -> Iterator[str]:
        """Hold the counter against the 20 ms call, where there is traffic to compare."""
        sampled = self._sampled_mbps.get(index, [])
        sampled_mbps = sum(sampled) / len(sampled) if sampled else 0.0
        larger_mbps = max(sampled_mbps, counted_mbps)
        told = f"PCIe counter {counted_mbps:.0f} Mbit/s, 20 ms call {sampled_mbps:.0f} Mbit/s"
        if not sampled or larger_mbps < _BUSY_MBPS:
            self.notes.append(f"GPU {index}: too little to compare ({told})")
        elif abs(sampled_mbps - counted_mbps) > _AGREE_FRACTION * larger_mbps:
            yield f"two ways to measure disagree: {told}"
        else:
            self.notes.append(f"GPU {index}: {told}")


def _sampled_rx_mbps(gpu: GpuReading) -> float | None:
    import pynvml  # noqa: PLC0415

    from spotwright_agent.collectors.gpu.links import sample_pcie_mbps  # noqa: PLC0415

    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(gpu.gpu_index)
        return sample_pcie_mbps(handle)["pcie_rx_mbps"]
    except pynvml.NVMLError:
        return None  # not every GPU has this call


@contextmanager
def _load() -> Iterator[str]:
    """Copy data to each GPU meanwhile, where torch can; tell what is done."""
    try:
        import torch  # noqa: PLC0415
    except ImportError:
        yield "none, torch is not installed here"
        return
    if not torch.cuda.is_available():
        yield "none, torch sees no GPU"
        return
    stopping = threading.Event()
    threads = [
        threading.Thread(target=_copy_until(stopping, torch, index), daemon=True)
        for index in range(torch.cuda.device_count())
    ]
    for thread in threads:
        thread.start()
    try:
        yield f"copies to {len(threads)} GPUs"
    finally:
        stopping.set()
        for thread in threads:
            thread.join(5.0)


def _copy_until(stopping: threading.Event, torch: Any, index: int) -> Callable[[], None]:
    def work() -> None:
        source = torch.empty(_COPIED_BYTES, dtype=torch.uint8, pin_memory=True)
        target = torch.empty(_COPIED_BYTES, dtype=torch.uint8, device=f"cuda:{index}")
        while not stopping.is_set():
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(index)

    return work
