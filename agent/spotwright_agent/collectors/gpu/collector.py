"""All GPUs of this host, through losses of a GPU and resets of the driver."""

import time
from collections.abc import Iterable

import pynvml

from spotwright_agent.collectors.gpu.device import GpuDevice
from spotwright_agent.collectors.gpu.errors import DRIVER_LOST
from spotwright_agent.collectors.gpu.xids import XidWatch
from spotwright_agent.readings import CollectorError, GpuReading, HostFigures

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
# Sampling PCIe blocks about 21 ms per direction: two GPUs at a time are under 0.1 s, and of eight
# GPUs each is seen every 4 s.
_SAMPLED_AT_ONCE = 2


class GpuCollector:
    """Figures of every GPU.

    When NVML is lost it is opened anew after a pause that doubles from 1 s to 60 s. A GPU that is
    lost among others has a reading without figures, `problem` tells of it, and NVML is opened anew
    after the same pauses to see whether it is back. Rates start anew then.
    """

    name = "gpu"
    may_hang = True  # NVML waits for the driver, which may be stuck

    def __init__(self) -> None:
        self.problem = ""  # what was wrong in the latest read, though it had figures
        self.names: tuple[str, ...] = ()  # once NVML was open; a lost GPU keeps its own
        self._devices: list[GpuDevice | None] | None = None  # None in it: lost
        self._lost: dict[int, str] = {}
        self._xids: XidWatch | None = None
        self._last_xids: dict[int, int] = {}
        self._retry = _Retry()
        self._turn = 0

    def read(self, now_s: float) -> HostFigures:
        """Return the readings of all GPUs.

        Raises:
            CollectorError: no GPU can be read now.
        """
        started_s = time.monotonic()
        self.problem = ""
        try:
            readings = self._read(now_s, started_s)
        except pynvml.NVMLError as error:
            self._lose(error, now_s)
            raise CollectorError(self._retry.problem) from error
        if self._lost and len(self._lost) == len(readings):
            self._close()
            raise CollectorError(self._retry.problem)
        self.problem = self._retry.problem
        return {"gpus": tuple(readings)}

    def close(self) -> None:
        """Shut NVML down."""
        self._close()

    def _read(self, now_s: float, started_s: float) -> list[GpuReading]:
        devices = self._open_devices(now_s)
        if self._xids is not None:
            self._last_xids |= self._xids.poll()
        sampled = self._take_turns(devices)
        readings = []
        for index, device in enumerate(devices):
            xid = self._last_xids.get(index)
            reading = GpuReading(gpu_index=index, last_xid=xid)
            if device is not None:
                # Earlier GPUs may have taken long: counters are read at their own time.
                read_s = now_s + time.monotonic() - started_s
                reading = self._reading(device, reading, read_s, sampled=index in sampled)
            readings.append(reading)
        self._settle(now_s)
        return readings

    def _reading(
        self, device: GpuDevice, empty: GpuReading, read_s: float, *, sampled: bool
    ) -> GpuReading:
        try:
            return device.read(read_s, sample_pcie=sampled, last_xid=empty.last_xid)
        except pynvml.NVMLError as error:
            if error.value in DRIVER_LOST:
                raise
            self._lose_gpu(device.index, error)
            return empty

    def _open_devices(self, now_s: float) -> list[GpuDevice | None]:
        """Return the GPUs, opening NVML anew where that is due."""
        if self._devices is not None:
            same = pynvml.nvmlDeviceGetCount() == len(self._devices)
            if same and not (self._lost and self._retry.is_due(now_s)):
                return self._devices
            self._close()
        elif not self._retry.is_due(now_s):
            raise CollectorError(self._retry.problem)
        return self._open()

    def _open(self) -> list[GpuDevice | None]:
        pynvml.nvmlInit()
        self._lost = {}
        devices: list[GpuDevice | None] = []
        self._devices = devices
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                devices.append(GpuDevice(index))
            except pynvml.NVMLError as error:
                devices.append(None)
                self._lost[index] = str(error)
        found = [device for device in devices if device is not None]
        self._xids = XidWatch(found)
        known = dict(enumerate(self.names)) | {device.index: device.name for device in found}
        self.names = tuple(known.get(index, "") for index in range(len(devices)))
        return devices

    def _take_turns(self, devices: Iterable[GpuDevice | None]) -> set[int]:
        waiting = [gpu.index for gpu in devices if gpu is not None and gpu.needs_pcie_sample]
        if not waiting:
            return set()
        first = self._turn % len(waiting)
        self._turn = first + _SAMPLED_AT_ONCE
        return set((waiting + waiting)[first : first + _SAMPLED_AT_ONCE])

    def _settle(self, now_s: float) -> None:
        """Note whether all GPUs were there, and when to look again."""
        if not self._lost:
            self._retry = _Retry()
            return
        told = (f"GPU {index}: {problem}" for index, problem in sorted(self._lost.items()))
        problem = "; ".join(told)
        if self._retry.is_due(now_s):
            self._retry.fail(problem, now_s)
        self._retry.problem = problem

    def _lose_gpu(self, index: int, error: pynvml.NVMLError) -> None:
        assert self._devices is not None
        self._devices[index] = None
        self._lost[index] = str(error)

    def _lose(self, error: pynvml.NVMLError, now_s: float) -> None:
        self._close()
        absent = error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
        # Without a driver there is nothing to wait for; someone may install one.
        self._retry.fail(str(error), now_s, pause_s=_LONGEST_PAUSE_S if absent else None)

    def _close(self) -> None:
        if self._devices is None:
            return
        self._devices = None
        if self._xids is not None:
            self._xids.close()
            self._xids = None
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # the driver is gone, and what NVML held with it


class _Retry:
    """When to open NVML anew."""

    def __init__(self) -> None:
        self.problem = ""
        self._pause_s, self._due_s = 0.0, float("-inf")

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def fail(self, problem: str, now_s: float, *, pause_s: float | None = None) -> None:
        doubled_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        self._pause_s = pause_s or doubled_s
        self.problem, self._due_s = problem, now_s + self._pause_s
