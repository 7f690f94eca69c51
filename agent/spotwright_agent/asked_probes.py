"""Probes that the daemon asks for: one at a time, and not too often to one host."""

import threading
import time
from collections.abc import Callable

from spotwright_agent.commands import Probe
from spotwright_agent.readings import ProbeResult

PAUSE_S = 10.0  # between two probes of one host
_MOST_PEERS = 256

Measure = Callable[[Probe], ProbeResult]


class AskedProbes:
    """Measures in a thread of its own, so that nothing else waits for it."""

    def __init__(self, measure: Measure, *, on_result: Callable[[ProbeResult], None]) -> None:
        self._measure, self._on_result = measure, on_result
        self._lock = threading.Lock()
        self._running = False
        self._last_s: dict[str, float] = {}  # when a host was probed last

    def ask(self, probe: Probe) -> None:
        """Start to measure, or say at once why not."""
        refusal = self._refusal(probe.peer)
        if refusal:
            self._on_result(
                ProbeResult(
                    peer=probe.peer,
                    time_unix_ms=int(time.time() * 1000),
                    command_id=probe.command_id,
                    problem=refusal,
                )
            )
            return
        threading.Thread(target=self._run, args=(probe,), name="probe", daemon=True).start()

    def _refusal(self, peer: str) -> str:
        now_s = time.monotonic()
        with self._lock:
            if self._running:
                return "another probe is running on this host"
            wait_s = self._last_s.get(peer, -PAUSE_S) + PAUSE_S - now_s
            if wait_s > 0:
                return f"{peer} was probed a moment ago; ask again in {wait_s:.0f} s"
            if len(self._last_s) >= _MOST_PEERS:
                self._last_s.clear()
            self._running, self._last_s[peer] = True, now_s
        return ""

    def _run(self, probe: Probe) -> None:
        try:
            self._on_result(self._measure(probe))
        finally:
            with self._lock:
                self._running = False
