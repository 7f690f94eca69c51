"""The daemon's metrics: what it counts itself, and what is read when someone asks.

Names follow Prometheus: seconds, bytes and ratios; a counter ends in `_total`.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)

from spotwright.adapters.metrics.agent_families import agent_families
from spotwright.adapters.metrics.figures import AgentFigures, Sources
from spotwright.adapters.metrics.state_families import (
    certificate_families,
    controlled_families,
    ingest_families,
    job_families,
    lane_families,
    loop_families,
    session_families,
    store_families,
)
from spotwright.domain.errors import SpotwrightError

_CALL_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_PLAN_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)
_AGENTS_KEPT_S = 5.0

_T = TypeVar("_T")


class DaemonMetrics:
    """Everything that is exported, in a registry of its own."""

    def __init__(
        self,
        sources: Sources,
        *,
        per_gpu: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(namespace="spotwright", registry=self._registry)
        self._calls = self._counter("calls", "Calls answered.", "method", "status")
        self._call_s = self._histogram("call_duration_seconds", _CALL_BUCKETS_S, "method")
        self._plans = self._counter("plans", "Searches that ended.", "status")
        self._plan_s = self._histogram("plan_duration_seconds", _PLAN_BUCKETS_S)
        failures = self._counter("metrics_failures", "Sources that could not be read.", "source")
        agents = _KeptAgents(sources.agents, clock)
        collector = _SourceCollector(sources, agents, per_gpu=per_gpu, failures=failures)
        self._registry.register(collector)

    def observe(self, method: str, status: str, seconds: float) -> None:
        """Count a call that was answered; this is the interceptor's Observe."""
        name = method.removeprefix("/")
        self._calls.labels(name, status).inc()
        self._call_s.labels(name).observe(seconds)

    def observe_plan(self, status: str, seconds: float) -> None:
        """Count a search: optimal, feasible, infeasible or failed."""
        self._plans.labels(status).inc()
        self._plan_s.observe(seconds)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format; takes a while, so not on the event loop."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"spotwright_{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, buckets_s: tuple[float, ...], *labels: str) -> Histogram:
        text = "How long it took, streams until they ended." if labels else "How long it took."
        return Histogram(
            f"spotwright_{name}", text, labels, buckets=buckets_s, registry=self._registry
        )


class _SourceCollector:
    """Reads the sources whenever the registry is asked."""

    def __init__(
        self, sources: Sources, agents: "_KeptAgents", *, per_gpu: bool, failures: Counter
    ) -> None:
        self._sources, self._agents = sources, agents
        self._per_gpu, self._failures = per_gpu, failures

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering reads no source."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return the series of every source that can be read."""
        sources = self._sources
        yield from self._read("lanes", sources.lanes, lane_families)
        yield from self._read("ingest", sources.ingest, ingest_families)
        yield from self._read("sessions", sources.session_count, session_families)
        yield from self._read("jobs", sources.jobs, job_families)
        yield from self._read("controlled", sources.controlled_job_count, controlled_families)
        yield from self._read("certificates", sources.certificate_days_left, certificate_families)
        yield from self._read("store", sources.store_bytes, store_families)
        yield from self._read("loop", sources.loop_lag_s, loop_families)
        yield from self._read("agents", self._agents.read, self._agent_families)

    def _read(
        self, source: str, read: Callable[[], _T], families: Callable[[_T], Iterable[Metric]]
    ) -> Iterable[Metric]:
        try:
            figures = read()
        except SpotwrightError:
            self._failures.labels(source).inc()
            return ()
        return families(figures)

    def _agent_families(self, agents: Iterable[AgentFigures]) -> Iterable[Metric]:
        return agent_families(tuple(agents), now=datetime.now(UTC), per_gpu=self._per_gpu)


class _KeptAgents:
    """The agents as they were a few seconds ago at most: many scrapers cost as much as one."""

    def __init__(
        self, read: Callable[[], Iterable[AgentFigures]], clock: Callable[[], float]
    ) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._kept: tuple[AgentFigures, ...] = ()
        self._read_s = float("-inf")

    def read(self) -> tuple[AgentFigures, ...]:
        """Return the agents."""
        with self._lock:
            if self._clock() - self._read_s >= _AGENTS_KEPT_S:
                self._kept = tuple(self._read())
                self._read_s = self._clock()
            return self._kept
