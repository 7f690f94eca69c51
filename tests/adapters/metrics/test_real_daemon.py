"""What a real daemon tells Prometheus of an agent that is connected to it."""

import queue
import time
import urllib.request
from collections.abc import Iterator

import grpc
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1 import telemetry_pb2_grpc
from tests.adapters.metrics.example_sources import busy_metrics, families
from tests.daemon_process import DaemonProcess, running_daemon


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    """Return what is told while an agent is connected, after its batch was acknowledged."""
    folder = tmp_path_factory.mktemp("daemon")
    with (
        running_daemon(folder, "--metrics-per-gpu") as daemon,
        grpc.insecure_channel(daemon.address) as channel,
    ):
        requests: queue.SimpleQueue[v1.SessionRequest | None] = queue.SimpleQueue()
        session = telemetry_pb2_grpc.TelemetryServiceStub(channel).Session(iter(requests.get, None))
        for request in batch_of_an_agent():
            requests.put(request)
        while not next(session).HasField("ack"):
            pass
        told = scrape(daemon)
        requests.put(None)
    return told


def batch_of_an_agent() -> Iterator[v1.SessionRequest]:
    now_unix_ms = round(time.time() * 1000)
    facts = v1.AgentFacts(
        agent_id="gpu-7", boot_id="b", instance_type="g5.2xlarge", zone="use1-az4", job_id="job-1"
    )
    gpus = [
        v1.GpuSample(gpu_index=0, utilization_fraction=0.25, pcie_rx_mbps=8.0, power_w=100),
        v1.GpuSample(gpu_index=1, utilization_fraction=0.75, pcie_rx_mbps=16.0),
    ]
    sample = v1.HostSample(time_unix_ms=now_unix_ms, interval_s=1, network_tx_mbps=80.0, gpus=gpus)
    step = v1.StepSample(time_unix_ms=now_unix_ms, step=1, step_s=0.5)
    notice = v1.Notice(
        kind=v1.NOTICE_KIND_INTERRUPTION, time_unix_ms=now_unix_ms, source="aws", detail="terminate"
    )
    batch = v1.Batch(
        sequence=1,
        send_time_unix_ms=now_unix_ms,
        samples=[sample],
        steps=[step],
        notices=[notice],
    )
    yield v1.SessionRequest(hello=facts)
    yield v1.SessionRequest(batch=batch)


def scrape(daemon: DaemonProcess) -> dict[str, Metric]:
    url = f"http://{daemon.told['metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as response:
        text = response.read().decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("connected", 1),
        ("notice_active", 1),
        ("gpu_utilization_ratio", 0.5),
        ("pcie_receive_bytes_per_second", 3e6),
        ("network_transmit_bytes_per_second", 10e6),
        ("step_seconds", 0.5),
    ],
)
def test_the_figures_of_an_agent_are_those_that_it_sent(
    scraped: dict[str, Metric], name: str, expected: float
) -> None:
    (sample,) = scraped[f"spotwright_agent_{name}"].samples

    assert sample.value == pytest.approx(expected)
    assert sample.labels == {
        "agent": "gpu-7",
        "job_id": "job-1",
        "instance_type": "g5.2xlarge",
        "zone": "use1-az4",
    }


def test_what_was_stored_is_counted(scraped: dict[str, Metric]) -> None:
    counted = {
        name: scraped[f"spotwright_ingest_{name}"].samples[0].value
        for name in ("batches", "rows", "duplicate_batches", "sessions", "store_failing")
    }

    assert counted == {
        "batches": 1,
        "rows": 2,
        "duplicate_batches": 0,
        "sessions": 1,
        "store_failing": 0,
    }


def test_each_gpu_is_told_where_that_was_asked_for(scraped: dict[str, Metric]) -> None:
    used = {
        sample.labels["gpu"]: sample.value
        for sample in scraped["spotwright_gpu_utilization_ratio"].samples
    }

    assert used == {"0": 0.25, "1": 0.75}


def test_a_daemon_exports_every_family_that_the_dashboard_is_checked_against(
    scraped: dict[str, Metric],
) -> None:
    assert set(families(busy_metrics(per_gpu=True))) - {
        f"spotwright_{name}_created" for name in ("calls", "call_duration_seconds", "plans")
    } <= set(scraped)
