"""What the daemon exports, as Prometheus reads it."""

import re
import time
from datetime import UTC, datetime

import pytest

from spotwright.adapters.metrics.agent_families import GONE_AFTER_S
from spotwright.adapters.metrics.daemon_metrics import DaemonMetrics
from spotwright.adapters.metrics.figures import AgentFigures
from spotwright.domain.errors import StoreUnavailableError
from spotwright.domain.telemetry import AgentFacts
from spotwright.usecases.record_telemetry import WriterFigures
from tests.adapters.metrics.example_sources import (
    ExampleDaemon,
    agent,
    busy_metrics,
    families,
    value,
)

PLAN_METHOD = "/spotwright.v1.PlannerService/CreatePlan"


def test_a_call_is_counted_by_method_and_status_and_timed_by_method() -> None:
    metrics = ExampleDaemon().metrics()
    metrics.observe(PLAN_METHOD, "OK", 0.02)
    metrics.observe(PLAN_METHOD, "OK", 0.2)
    metrics.observe(PLAN_METHOD, "RESOURCE_EXHAUSTED", 0.001)

    method = PLAN_METHOD.removeprefix("/")
    duration = "spotwright_call_duration_seconds"
    assert value(metrics, "spotwright_calls_total", method=method, status="OK") == 2
    assert value(metrics, "spotwright_calls_total", status="RESOURCE_EXHAUSTED") == 1
    assert value(metrics, f"{duration}_count", method=method) == 3
    assert value(metrics, f"{duration}_sum", method=method) == pytest.approx(0.221)
    assert value(metrics, f"{duration}_bucket", le="0.025") == 2


def test_a_search_is_counted_by_how_it_ended_and_timed() -> None:
    metrics = ExampleDaemon().metrics()
    metrics.observe_plan("optimal", 0.7)
    metrics.observe_plan("infeasible", 3.0)

    assert value(metrics, "spotwright_plans_total", status="optimal") == 1
    assert value(metrics, "spotwright_plans_total", status="infeasible") == 1
    assert value(metrics, "spotwright_plan_duration_seconds_bucket", le="1.0") == 1
    assert value(metrics, "spotwright_plan_duration_seconds_sum") == pytest.approx(3.7)


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("plan_lane_running", {"lane": "plan"}, 2),
        ("plan_lane_waiting", {"lane": "plan"}, 3),
        ("ingest_sessions", {}, 2),
        ("ingest_batches_total", {}, 40),
        ("ingest_rows_total", {}, 3_200),
        ("ingest_duplicate_batches_total", {}, 3),
        ("ingest_refused_batches_total", {}, 1),
        ("ingest_queued_batches", {}, 5),
        ("ingest_queued_bytes", {}, 900),
        ("ingest_store_failing", {}, 1),
        ("ingest_commit_seconds_count", {}, 8),
        ("ingest_commit_seconds_bucket", {"le": "0.025"}, 5),
        ("ingest_commit_seconds_bucket", {"le": "5.0"}, 7),
        ("ingest_commit_seconds_sum", {}, 0.4),
        ("jobs", {"state": "running"}, 4),
        ("jobs_controlled", {}, 4),
        ("certificate_days_left", {"certificate": "server"}, 80.5),
        ("certificate_days_left", {"certificate": "ca"}, 3_000),
        ("store_bytes", {}, 123_456),
        ("event_loop_lag_seconds", {}, 0.012),
        ("agents", {}, 2),
        ("agents_connected", {}, 2),
        ("agent_connected", {"agent": "a1"}, 1),
        ("agent_clock_skew_seconds", {"agent": "a1"}, -0.25),
        ("agent_notice_active", {"agent": "a1"}, 1),
        ("agent_dropped_samples", {"agent": "a1"}, 7),
        ("agent_step_seconds", {"agent": "a1"}, 0.31),
        ("agent_gpu_utilization_ratio", {"agent": "a1"}, 0.5),  # mean of two
        ("agent_gpu_memory_used_bytes", {"agent": "a1"}, 2e9),  # sum of two
        ("agent_pcie_receive_bytes_per_second", {"agent": "a1"}, 2e9),  # 2 x 8,000 mbps
        ("agent_pcie_transmit_bytes_per_second", {"agent": "a1"}, 2e8),
        ("agent_network_receive_bytes_per_second", {"agent": "a1"}, 11e6),  # 80 + 8 mbps of RDMA
        ("agent_network_transmit_bytes_per_second", {"agent": "a1"}, 2e6),
    ],
)
def test_a_figure_is_exported_in_base_units(
    name: str, labels: dict[str, str], expected: float
) -> None:
    assert value(busy_metrics(), f"spotwright_{name}", **labels) == pytest.approx(expected)


def test_an_agent_is_told_with_its_job_type_and_zone() -> None:
    labels = {
        "agent": "a1",
        "job_id": "resnet50-1",
        "instance_type": "g5.xlarge",
        "zone": "use1-az4",
    }

    age_s = value(busy_metrics(), "spotwright_agent_last_seen_age_seconds", **labels)

    assert age_s is not None
    assert 2.0 <= age_s < 60.0


def test_what_an_agent_could_not_read_has_no_series() -> None:
    bare = AgentFigures(
        facts=AgentFacts(agent_id="bare", boot_id="b"),
        connected=True,
        last_seen=datetime.now(UTC),
        clock_skew_s=0.0,
        dropped_sample_count=0,
        notice_active=False,
        gpus={0: {"utilization_fraction": 0.25}, 1: {}},
    )
    metrics = ExampleDaemon(agents=[bare]).metrics()

    assert value(metrics, "spotwright_agent_gpu_utilization_ratio", agent="bare") == 0.25
    assert value(metrics, "spotwright_agent_step_seconds", agent="bare") is None
    assert value(metrics, "spotwright_agent_pcie_receive_bytes_per_second", agent="bare") is None
    assert value(metrics, "spotwright_agent_network_receive_bytes_per_second") is None


def test_an_agent_that_is_gone_leaves_no_series() -> None:
    daemon = ExampleDaemon()
    metrics = daemon.metrics(per_gpu=True)
    assert 'agent="a2"' in metrics.render().decode()

    daemon.agents = [agent("a1")]
    daemon.now_s += 5.0

    assert 'agent="a2"' not in metrics.render().decode()


def test_an_agent_that_was_silent_for_long_counts_as_gone() -> None:
    lost = agent("lost", silent_s=GONE_AFTER_S - 60, connected=False)
    gone = agent("gone", silent_s=GONE_AFTER_S + 60)
    metrics = ExampleDaemon(agents=[agent("a1"), lost, gone]).metrics()

    assert value(metrics, "spotwright_agents") == 2
    assert value(metrics, "spotwright_agents_connected") == 1
    assert value(metrics, "spotwright_agent_connected", agent="lost") == 0
    assert value(metrics, "spotwright_agent_connected", agent="gone") is None


def test_an_agent_whose_replica_died_does_not_count_as_connected() -> None:
    metrics = ExampleDaemon(agents=[agent("cut-off", silent_s=400.0)]).metrics()

    assert value(metrics, "spotwright_agents") == 1
    assert value(metrics, "spotwright_agents_connected") == 0
    assert value(metrics, "spotwright_agent_connected", agent="cut-off") == 0


def test_agents_are_read_once_for_scrapes_close_together() -> None:
    daemon = ExampleDaemon()
    metrics = daemon.metrics()
    metrics.render()
    metrics.render()
    assert daemon.agent_reads == 1

    daemon.now_s += 5.0
    metrics.render()
    assert daemon.agent_reads == 2


def test_gpus_have_series_only_where_that_was_asked_for() -> None:
    usual = {name for name in families(busy_metrics()) if name.startswith("spotwright_gpu_")}
    asked = busy_metrics(per_gpu=True)

    assert usual == set()
    assert value(asked, "spotwright_gpu_power_watts", agent="a2", gpu="1") == 70.0
    assert value(asked, "spotwright_gpu_pcie_receive_bytes_per_second", agent="a1", gpu="0") == 1e9


def test_a_source_that_fails_takes_no_other_series_along() -> None:
    def failing() -> WriterFigures:
        raise StoreUnavailableError("the store is locked")

    metrics = ExampleDaemon(ingest=failing).metrics()
    metrics.render()

    assert value(metrics, "spotwright_ingest_batches_total") is None
    assert value(metrics, "spotwright_store_bytes") == 123_456
    assert value(metrics, "spotwright_metrics_failures_total", source="ingest") >= 1  # type: ignore[operator]


def test_names_an_agent_chose_cannot_break_the_text() -> None:
    odd = 'a"1\\\n{x="y"} 7'
    metrics = ExampleDaemon(agents=[agent(odd)]).metrics()

    assert value(metrics, "spotwright_agent_step_seconds", agent=odd) == 0.31


def test_every_name_has_a_prefix_and_no_two_registries_share_anything() -> None:
    first, second = busy_metrics(), ExampleDaemon().metrics()

    assert all(re.fullmatch(r"spotwright_[a-z_]+", name) for name in families(first))
    assert value(second, "spotwright_plans_total", status="optimal") is None


def test_a_thousand_agents_are_rendered_in_a_moment() -> None:
    metrics = ExampleDaemon(agents=[agent(f"a{i}", gpu_count=8) for i in range(1_000)]).metrics()
    metrics.render()

    taken_s = min(_cpu_s_of_rendering(metrics) for _ in range(3))

    assert taken_s < 0.3


def _cpu_s_of_rendering(metrics: DaemonMetrics) -> float:
    started_s = time.process_time()
    metrics.render()
    return time.process_time() - started_s
