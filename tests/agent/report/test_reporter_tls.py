"""The reporter over TLS: certificates that are renewed, and one that has ended."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import init_folder, issue
from spotwright_agent.report.session import SessionPatience
from spotwright_agent.tls_files import TlsFiles
from tests.agent.report.reporting import reporting, sample, stored, until
from tests.cli.command import spotwright_here
from tests.daemon_process import DaemonProcess, running_daemon

_OFTEN = SessionPatience(look_s=0.2)


def _folder(tmp_path: Path) -> Path:
    tls = tmp_path / "tls"
    init_folder(tls, hosts=["127.0.0.1"], now=datetime.now(UTC))
    _issue(tls, CertificateKind.AGENT)
    return tls


def _own(tls: Path) -> TlsFiles:
    return TlsFiles.of(tls, "gpu-7")


def _issue(tls: Path, kind: CertificateKind, *, days_ago: float = 0.0) -> None:
    name = "gpu-7" if kind is CertificateKind.AGENT else "daemon"
    hosts = ("127.0.0.1",) if kind is CertificateKind.SERVER else ()
    request = CertificateRequest(kind=kind, name=name, days=90, hosts=hosts)
    issue(tls, [request], now=datetime.now(UTC) - timedelta(days=days_ago))


def _stored(daemon: DaemonProcess, tls: Path) -> list[int]:
    made = spotwright_here(
        "tokens", "create", "viewer", "--role", "viewer", "--store", daemon.store_url
    )
    assert made.returncode == 0, made.stderr
    files = [(tls / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")]
    credentials = grpc.composite_channel_credentials(
        grpc.ssl_channel_credentials(*files),
        grpc.access_token_call_credentials(made.stdout.strip()),
    )
    return stored("", channel=grpc.secure_channel(daemon.address, credentials))


def test_certificates_renewed_on_both_sides_lose_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = _folder(tmp_path)
    with (
        running_daemon(tmp_path, "--tls-dir", str(tls)) as daemon,
        reporting(
            tmp_path, daemon.address, tls=TlsFiles.of(tls, "gpu-7"), patience=_OFTEN
        ) as running,
    ):
        running.until_connected()
        assert running.reporter.figures().certificate_days_left == pytest.approx(90, abs=0.5)
        for number in range(1, 301):
            running.outbox.add_sample(sample(number))
            if number % 100 == 0:
                _issue(tls, CertificateKind.AGENT)
                _issue(tls, CertificateKind.SERVER)
                sessions = running.reporter.figures().session_count
                until(
                    lambda before=sessions: running.reporter.figures().session_count > before,  # type: ignore[misc]
                    "a session with the new certificate",
                )
        running.until_all_acked()
        assert running.reporter.figures().last_error == ""

        assert _stored(daemon, tls) == list(range(1, 301))
    assert "another agent" not in caplog.text


def test_a_certificate_that_has_ended_is_told_and_its_renewal_noticed(tmp_path: Path) -> None:
    tls = _folder(tmp_path)
    _issue(tls, CertificateKind.AGENT, days_ago=100)
    with (
        running_daemon(tmp_path, "--tls-dir", str(tls)) as daemon,
        reporting(
            tmp_path, daemon.address, tls=TlsFiles.of(tls, "gpu-7"), patience=_OFTEN
        ) as running,
    ):
        running.outbox.add_sample(sample(1))
        until(lambda: running.reporter.figures().last_error, "it is refused")
        days_left = running.reporter.figures().certificate_days_left
        assert days_left == pytest.approx(-10, abs=0.5)
        assert not running.reporter.figures().connected

        _issue(tls, CertificateKind.AGENT)
        running.until_connected()
        running.until_all_acked()
        assert _stored(daemon, tls) == [1]


def test_a_renewed_certificate_is_tried_until_the_daemon_takes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = _folder(tmp_path)
    key = _own(tls).key
    with (
        running_daemon(tmp_path, "--tls-dir", str(tls)) as daemon,
        reporting(tmp_path, daemon.address, tls=_own(tls), patience=_OFTEN) as running,
    ):
        running.until_connected()
        good = key.read_bytes()
        lines = good.splitlines(keepends=True)
        key.write_bytes(b"".join([lines[0], lines[1][::-1], *lines[2:]]))
        until(lambda: "the new session did not begin" in caplog.text, "it is refused")
        was_ns = key.stat().st_mtime_ns
        key.write_bytes(good)
        os.utime(key, ns=(was_ns, was_ns))  # the files do not look as if they changed again
        until(lambda: running.reporter.figures().session_count >= 2, "the session is renewed")
        assert running.reporter.figures().connected
