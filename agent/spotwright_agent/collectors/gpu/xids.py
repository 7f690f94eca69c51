"""Xid errors: what the driver reports when a GPU, or a program on it, goes wrong."""

import ctypes
from collections.abc import Sequence
from typing import Any

import pynvml

from spotwright_agent.collectors.gpu.device import GpuDevice

_MOST_AT_ONCE = 64  # a GPU in trouble reports many; the rest comes at the next read


class XidWatch:
    """Events of the GPUs of an open NVML; without support there are never any."""

    def __init__(self, devices: Sequence[GpuDevice]) -> None:
        self._indices = {_address(device.handle): device.index for device in devices}
        self._events = _event_set(devices)

    def poll(self) -> dict[int, int]:
        """Return the latest Xid by GPU since the call before; never waits."""
        found: dict[int, int] = {}
        for _ in range(_MOST_AT_ONCE if self._events is not None else 0):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, 0)
            except pynvml.NVMLError:  # TIMEOUT: no more; the GPUs themselves tell of anything else
                break
            index = self._indices.get(_address(event.device))
            if index is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                found[index] = int(event.eventData)
        return found

    def close(self) -> None:
        """Give the events back."""
        if self._events is not None:
            _quietly(pynvml.nvmlEventSetFree, self._events)
            self._events = None


def _event_set(devices: Sequence[GpuDevice]) -> Any:
    try:
        events = pynvml.nvmlEventSetCreate()
    except pynvml.NVMLError:
        return None
    for device in devices:
        _quietly(
            pynvml.nvmlDeviceRegisterEvents,
            device.handle,
            pynvml.nvmlEventTypeXidCriticalError,
            events,
        )
    return events


def _quietly(call: Any, *arguments: Any) -> None:
    try:
        call(*arguments)
    except pynvml.NVMLError:
        return  # not supported on this GPU: it has no Xids to tell


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
