"""Series of what the daemon itself is doing now."""

from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from spotwright.adapters.metrics.figures import LaneFigures
from spotwright.usecases.record_telemetry import COMMIT_BUCKETS_S, WriterFigures


def lane_families(lanes: Mapping[str, LaneFigures]) -> Iterator[Metric]:
    """Return what the planner's processes work on, and what waits for them."""
    running = {name: lane.running_count for name, lane in lanes.items()}
    waiting = {name: lane.waiting_count for name, lane in lanes.items()}
    yield _by_name("plan_lane_running", "Calls in a planning process.", "lane", running)
    yield _by_name("plan_lane_waiting", "Calls that wait for one.", "lane", waiting)


def ingest_families(ingest: WriterFigures) -> Iterator[Metric]:
    """Return how telemetry comes in."""
    yield _counter("ingest_batches", "Batches stored.", ingest.batches_stored)
    yield _counter("ingest_rows", "GPU samples stored, and hosts without.", ingest.rows_stored)
    yield _counter("ingest_duplicate_batches", "Batches stored before.", ingest.duplicates)
    yield _counter("ingest_refused_batches", "Batches that cannot be stored.", ingest.refused)
    yield _gauge("ingest_queued_batches", "Received, not stored yet.", ingest.queue_length)
    yield _gauge("ingest_queued_bytes", "Received, not stored yet.", ingest.queue_bytes)
    yield _gauge("ingest_store_failing", "The latest commit failed.", ingest.store_failing)
    bounds = [*map(str, COMMIT_BUCKETS_S), "+Inf"]
    yield HistogramMetricFamily(
        "spotwright_ingest_commit_seconds",
        "Storing batches for good, one transaction.",
        buckets=list(zip(bounds, accumulate(ingest.commit_counts), strict=True)),
        sum_value=ingest.commit_total_s,
    )


def session_families(session_count: int) -> Iterator[Metric]:
    """Return how many agents are connected here."""
    yield _gauge("ingest_sessions", "Sessions open on this replica.", session_count)


def job_families(states: Mapping[str, int]) -> Iterator[Metric]:
    """Return how many jobs stand where."""
    yield _by_name("jobs", "Jobs in the store.", "state", states)


def controlled_families(job_count: int) -> Iterator[Metric]:
    """Return how many jobs this replica controls."""
    yield _gauge("jobs_controlled", "Jobs that this replica controls.", job_count)


def certificate_families(days_left: Mapping[str, float]) -> Iterator[Metric]:
    """Return for how long certificates are still good."""
    yield _by_name(
        "certificate_days_left", "Until a certificate expires.", "certificate", days_left
    )


def store_families(size_bytes: int) -> Iterator[Metric]:
    """Return how large the store is."""
    yield _gauge("store_bytes", "Size of the store, without its write-ahead log.", size_bytes)


def loop_families(lag_s: float) -> Iterator[Metric]:
    """Return how long the event loop was held up."""
    yield _gauge("event_loop_lag_seconds", "Longest delay of the event loop lately.", lag_s)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"spotwright_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"spotwright_{name}", text, value=float(value))


def _by_name(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"spotwright_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family
