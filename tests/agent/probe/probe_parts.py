"""A real listener in a thread, and certificates of a real authority."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import init_folder, issue
from spotwright_agent.probe.listener import ProbeListener
from spotwright_agent.tls_files import TlsFiles


@contextmanager
def listening(tls: TlsFiles | None = None, *, address: str = "127.0.0.1:0") -> Iterator[str]:
    listener = ProbeListener(address, tls=tls)
    stopping = threading.Event()
    thread = threading.Thread(target=listener.run, args=(stopping,))
    thread.start()
    try:
        yield f"127.0.0.1:{listener.port}"
    finally:
        stopping.set()
        thread.join(30)
        assert not thread.is_alive()


def made_agents(folder: Path, *names: str) -> list[TlsFiles]:
    now = datetime.now(UTC)
    init_folder(folder, hosts=(), now=now)
    agent = CertificateKind.AGENT
    issue(folder, [CertificateRequest(kind=agent, name=name, days=1) for name in names], now=now)
    return [TlsFiles.of(folder, name) for name in names]
