"""Whether an agent's certificate, its key and its name go together."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import init_folder, issue
from spotwright_agent.tls_files import TlsFiles, pair_problem


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, now = tmp_path_factory.mktemp("tls"), datetime.now(UTC)
    init_folder(folder, hosts=["localhost"], now=now)
    names = ("gpu-7", "gpu-77")
    requests = [CertificateRequest(kind=CertificateKind.AGENT, name=name, days=1) for name in names]
    issue(folder, requests, now=now)
    return folder


def test_what_was_issued_together_goes_together(issued: Path) -> None:
    assert pair_problem(TlsFiles.of(issued, "gpu-7"), "gpu-7") == ""


def _of_another_agent(own: Path) -> None:
    for end in (".crt", ".key"):
        shutil.copy(own / f"gpu-77{end}", own / f"gpu-7{end}")


def _another_key(own: Path) -> None:
    shutil.copy(own / "gpu-77.key", own / "gpu-7.key")


def _no_key(own: Path) -> None:
    (own / "gpu-7.key").unlink()


def _garbage(own: Path) -> None:
    (own / "gpu-7.crt").write_bytes(b"\xff\x00")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_of_another_agent, "of another agent, not of gpu-7"),
        (_another_key, "cannot be used"),
        (_no_key, "gpu-7.key is not there"),
        (_garbage, "cannot be used"),
    ],
)
def test_what_does_not_is_told(
    tmp_path: Path, issued: Path, spoil: Callable[[Path], None], told: str
) -> None:
    folder = shutil.copytree(issued, tmp_path / "tls")
    spoil(folder / "agents")

    assert told in pair_problem(TlsFiles.of(folder, "gpu-7"), "gpu-7")
