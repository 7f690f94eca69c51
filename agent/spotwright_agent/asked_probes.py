"""Probes that the daemon asks for: one at a time, and not too often to one host."""

import logging
import threading
import time
from collections.abc import Callable

from spotwright_agent.commands import Probe
from spotwright_agent.readings import ProbeResult

_log = logging.getLogger(__name__)
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
        if refusal := self._refusal(probe.peer):
            self._on_result(_failed(probe, refusal))
            return
        try:
            threading.Thread(target=self._run, args=(probe,), name="probe", daemon=True).start()
        except RuntimeError as error:  # no room for another thread
            self._end(_failed(probe, str(error)))

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
            result = self._measure(probe)
        except Exception as error:  # whoever asked waits for an answer
            _log.exception("a probe broke")
            result = _failed(probe, f"{type(error).__name__}: {error}"[:200])
        self._end(result)

    def _end(self, result: ProbeResult) -> None:
        if result.problem:
            _log.warning("the probe of %r failed: %s", result.peer, result.problem)
        with self._lock:  # first: whoever gets the result may ask for the next
            self._running = False
        self._on_result(result)


def _failed(probe: Probe, problem: str) -> ProbeResult:
    return ProbeResult(
        peer=probe.peer,
        time_unix_ms=time.time_ns() // 1_000_000,
        command_id=probe.command_id,
        problem=problem,
    )
