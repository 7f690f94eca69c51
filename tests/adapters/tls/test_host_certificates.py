"""Certificates of hosts: they match their key and their term, and leave nothing in the folder."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from spotwright.adapters.tls.host_certificates import host_issuer
from spotwright.adapters.tls.issue_files import init_folder
from spotwright.domain.errors import BadInputError

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
HOST = "i-0123456789abcdef0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tls"
    init_folder(made, hosts=["head.example.org"], now=NOW)
    return made


def test_a_host_gets_a_certificate_of_the_authority_with_its_key(folder: Path) -> None:
    made = host_issuer(folder, days=30).issue(HOST, NOW)

    certificate = x509.load_pem_x509_certificate(made.certificate_pem)
    key = serialization.load_pem_private_key(made.key_pem, password=None)
    assert certificate.public_key() == key.public_key()
    ours = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    certificate.verify_directly_issued_by(ours)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    [uri] = names.get_values_for_type(x509.UniformResourceIdentifier)
    assert uri == f"spiffe://spotwright/agent/{HOST}"


def test_a_term_says_who_made_it_and_when_it_ends(folder: Path) -> None:
    issuer = host_issuer(folder, days=30)

    term = issuer.issue(HOST, NOW).term

    ours = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    assert term.authority == issuer.authority == f"{ours.serial_number:x}"
    assert term.start_time <= NOW
    assert term.expire_time == NOW + timedelta(days=30)


def test_nothing_of_a_host_is_written(folder: Path) -> None:
    before = sorted(folder.rglob("*"))

    host_issuer(folder, days=30).issue(HOST, NOW)

    assert sorted(folder.rglob("*")) == before


def test_a_folder_without_an_authority_cannot_issue(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="spotwright certs init"):
        host_issuer(tmp_path, days=30)
