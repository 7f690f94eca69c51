"""When certificates end, and waits before another try."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from spotwright_agent.report.backoff import Backoff
from spotwright_agent.report.certificate_times import (
    CertificateUnreadableError,
    days_left,
    not_after_unix_s,
)
from spotwright_agent.report.certificate_watch import CertificateWatch
from spotwright_agent.tls_files import TlsFiles

_KEY = ec.generate_private_key(ec.SECP256R1())


def _pem(end: datetime, *, name: str = "gpu-7") -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(_KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(1971, 1, 1, tzinfo=UTC))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(_KEY, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@settings(deadline=None, max_examples=50)
@given(st.datetimes(datetime(1972, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC)))
def test_the_end_is_what_was_signed(end: datetime) -> None:
    expected = end.replace(microsecond=0)
    assert not_after_unix_s("text before\n" + _pem(expected)) == expected.timestamp()


@pytest.mark.parametrize(
    "content",
    ["", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----",
     "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----",
     "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg\n-----END CERTIFICATE-----", "\x00\u00ff"],
)  # fmt: skip
def test_a_file_without_a_certificate_is_said_to_be_one(tmp_path: Path, content: str) -> None:
    file = tmp_path / "a.crt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CertificateUnreadableError, match=r"a\.crt"):
        days_left(file)


@pytest.mark.parametrize(
    ("days", "expected"), [(90, ""), (13.5, "ends in 13 days"), (-2, "ended 2 days ago")]
)
def test_a_certificate_that_ends_soon_is_told(tmp_path: Path, days: float, expected: str) -> None:
    (tmp_path / "agents").mkdir()
    files = TlsFiles.of(tmp_path, "gpu-7")
    files.certificate.write_text(_pem(datetime.now(UTC) + timedelta(days=days)))
    watch = CertificateWatch(files)
    assert watch.days_left == pytest.approx(days, abs=0.01)
    assert expected in watch.problem
    assert bool(watch.problem) == bool(expected)
    before = watch.state()
    assert watch.state() == before
    files.certificate.write_text(_pem(datetime.now(UTC) + timedelta(days=400)))
    watch.look()
    assert watch.state() != before
    assert watch.problem == ""


def test_waits_double_within_their_bounds_and_begin_anew_after_something_good() -> None:
    backoff = Backoff(random.Random(7))
    longest_s = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    for most_s in longest_s:
        assert most_s / 2 <= backoff.after_failure_s() <= most_s
    backoff.reset()
    assert backoff.after_failure_s() <= 0.5
    assert 20 <= backoff.after_failure_s(asked_s=20) <= 25
    assert backoff.after_failure_s(asked_s=1e9) <= 375
    waits = {backoff.after_replacement_s() for _ in range(50)}
    assert min(waits) >= 30
    assert max(waits) <= 60
    assert len(waits) > 40
