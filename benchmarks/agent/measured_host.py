"""A host to measure: a daemon with TLS, GPUs and a cloud that are stand-ins, and a real agent."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.daemon.served import ServedDaemon
from spotwright.adapters.store.sql_store import open_store
from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import issue
from spotwright.client import Client
from tests.adapters.grpc.planning.example_plan import kept_plan
from tests.agent.agent_process import AgentProcess
from tests.agent.nvml_stub import StubGpus
from tests.fakes.metadata_server import MetadataServer, metadata_server

GPU_COUNT = 8


@dataclass
class MeasuredHost:
    """One host with its agent, which is not started yet."""

    name: str
    agent: AgentProcess
    gpus: StubGpus
    cloud: MetadataServer


@contextmanager
def served_daemon(folder: Path) -> Iterator[tuple[ServedDaemon, Client]]:
    """Start a daemon and a client of it."""
    daemon = ServedDaemon(folder)
    store = open_store(daemon.store_url)
    store.add_plan(kept_plan())
    store.close()
    with daemon, Client(daemon.address, tls_dir=daemon.tls_dir, token=daemon.token) as client:
        yield daemon, client


@contextmanager
def measured_host(
    folder: Path, name: str, daemon: ServedDaemon, *, job_id: str = ""
) -> Iterator[MeasuredHost]:
    """Make a host in the cloud with eight GPUs, and end its agent at last."""
    folder.mkdir(exist_ok=True)
    request = CertificateRequest(kind=CertificateKind.AGENT, name=name, days=90)
    issue(daemon.tls_dir, [request], now=datetime.now(UTC))
    gpus = StubGpus(folder, count=GPU_COUNT, wobble=0.2)
    with ExitStack() as stack:
        cloud = stack.enter_context(metadata_server("aws"))
        flags = [
            "--agent-id", name, "--daemon", daemon.address, "--tls-dir", str(daemon.tls_dir),
            "--cloud", "aws", "--metadata-url", cloud.url, "--job-id", job_id,
        ]  # fmt: skip
        agent = AgentProcess(folder, *flags, environment=gpus.environment)
        try:
            yield MeasuredHost(name, agent, gpus, cloud)
        finally:
            if agent.is_running():
                agent.stop()
            agent.forget()
