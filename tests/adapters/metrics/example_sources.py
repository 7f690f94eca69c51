"""A daemon with something to tell in every metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from spotwright.adapters.metrics.daemon_metrics import DaemonMetrics
from spotwright.adapters.metrics.figures import AgentFigures, LaneFigures, Sources
from spotwright.domain.telemetry import AgentFacts
from spotwright.usecases.record_telemetry import WriterFigures

INGEST = WriterFigures(
    batches_stored=40,
    rows_stored=3_200,
    duplicates=3,
    refused=1,
    commits=8,
    commit_total_s=0.4,
    commit_counts=(0, 1, 4, 0, 2, 0, 0, 0, 0, 0, 1),
    queue_length=5,
    queue_bytes=900,
    store_failing=True,
)


def agent(
    name: str, *, silent_s: float = 2.0, gpu_count: int = 2, connected: bool = True
) -> AgentFigures:
    gpu = {
        "utilization_fraction": 0.5,
        "memory_used_bytes": 1e9,
        "pcie_rx_mbps": 8_000.0,
        "pcie_tx_mbps": 800.0,
        "power_w": 70.0,
        "temperature_c": 60.0,
    }
    return AgentFigures(
        facts=AgentFacts(
            agent_id=name,
            boot_id="b1",
            job_id="resnet50-1",
            instance_type="g5.xlarge",
            zone="use1-az4",
        ),
        connected=connected,
        last_seen=datetime.now(UTC) - timedelta(seconds=silent_s),
        clock_skew_s=-0.25,
        dropped_sample_count=7,
        notice_active=True,
        host={"network_rx_mbps": 80.0, "rdma_rx_mbps": 8.0, "network_tx_mbps": 16.0},
        gpus=dict.fromkeys(range(gpu_count), gpu),
        step={"step_s": 0.31},
    )


@dataclass
class ExampleDaemon:
    """What its sources tell; a test changes it."""

    agents: Sequence[AgentFigures] = field(default_factory=lambda: [agent("a1"), agent("a2")])
    ingest: Callable[[], WriterFigures] = lambda: INGEST
    lanes: Mapping[str, LaneFigures] = field(
        default_factory=lambda: {"plan": LaneFigures(running_count=2, waiting_count=3)}
    )
    agent_reads: int = 0
    now_s: float = 0.0

    def metrics(self, *, per_gpu: bool = False) -> DaemonMetrics:
        return DaemonMetrics(
            Sources(
                lanes=lambda: self.lanes,
                ingest=self.ingest,
                session_count=lambda: 2,
                jobs=lambda: {"running": 4, "succeeded": 9},
                controlled_job_count=lambda: 4,
                certificate_days_left=lambda: {"server": 80.5, "ca": 3_000.0},
                store_bytes=lambda: 123_456,
                loop_lag_s=lambda: 0.012,
                agents=self._read_agents,
            ),
            per_gpu=per_gpu,
            clock=lambda: self.now_s,
        )

    def _read_agents(self) -> Sequence[AgentFigures]:
        self.agent_reads += 1
        return self.agents


def busy_metrics(*, per_gpu: bool = False) -> DaemonMetrics:
    """Return metrics in which every family has a series."""
    metrics = ExampleDaemon().metrics(per_gpu=per_gpu)
    metrics.observe("/spotwright.v1.PlannerService/CreatePlan", "OK", 0.8)
    metrics.observe_plan("optimal", 0.7)
    return metrics


def families(metrics: DaemonMetrics) -> dict[str, Metric]:
    """Return what Prometheus would read, by name."""
    text = metrics.render().decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(metrics: DaemonMetrics, name: str, **labels: str) -> float | None:
    """Return the value of the one sample with these labels among others."""
    found = [
        sample.value
        for family in families(metrics).values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) <= 1, found
    return found[0] if found else None
