import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from spotwright.adapters.tls.authority import (
    CA_DAYS,
    Authority,
    CertificateKind,
    CertificateRequest,
    KeyPair,
    make_authority,
)
from spotwright.domain.errors import BadInputError

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
KINDS = list(CertificateKind)


def opened(pair: KeyPair) -> Authority:
    key = load_pem_private_key(pair.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Authority(x509.load_pem_x509_certificate(pair.certificate), key)


def request(kind: CertificateKind, name: str = "gpu-7", days: float = 90) -> CertificateRequest:
    hosts = ("head.example.org", "10.0.0.5") if kind is CertificateKind.SERVER else ()
    return CertificateRequest(kind=kind, name=name, days=days, hosts=hosts)


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    return make_authority(now=NOW)


def issued(ca: KeyPair, kind: CertificateKind, *, days: float = 90) -> x509.Certificate:
    pair = opened(ca).issue(request(kind, days=days), now=NOW)
    return x509.load_pem_x509_certificate(pair.certificate)


def verifier(ca: KeyPair, *, at: datetime) -> PolicyBuilder:
    store = Store([x509.load_pem_x509_certificate(ca.certificate)])
    return PolicyBuilder().store(store).time(at)


@pytest.mark.parametrize("kind", [CertificateKind.CLIENT, CertificateKind.AGENT])
def test_a_client_is_verified_by_the_rules_of_the_web(ca: KeyPair, kind: CertificateKind) -> None:
    found = verifier(ca, at=NOW).build_client_verifier().verify(issued(ca, kind), [])

    assert found.subjects is not None
    assert [name.value for name in found.subjects] == [f"spiffe://spotwright/{kind}/gpu-7"]


@pytest.mark.parametrize("host", ["head.example.org", "localhost", "10.0.0.5", "127.0.0.1", "::1"])
def test_a_server_is_verified_under_each_of_its_hosts(ca: KeyPair, host: str) -> None:
    try:
        subject: x509.DNSName | x509.IPAddress = x509.IPAddress(ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    certificate = issued(ca, CertificateKind.SERVER)

    chain = verifier(ca, at=NOW).build_server_verifier(subject).verify(certificate, [])

    assert chain[0] == certificate


def test_a_server_is_not_verified_under_another_name(ca: KeyPair) -> None:
    checked = verifier(ca, at=NOW).build_server_verifier(x509.DNSName("other.example.org"))

    with pytest.raises(VerificationError):
        checked.verify(issued(ca, CertificateKind.SERVER), [])


def test_a_server_certificate_is_no_client_and_a_client_certificate_no_server(ca: KeyPair) -> None:
    purposes = {
        kind: list(issued(ca, kind).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        for kind in KINDS
    }

    assert purposes == {
        CertificateKind.SERVER: [ExtendedKeyUsageOID.SERVER_AUTH],
        CertificateKind.CLIENT: [ExtendedKeyUsageOID.CLIENT_AUTH],
        CertificateKind.AGENT: [ExtendedKeyUsageOID.CLIENT_AUTH],
    }
    with pytest.raises(VerificationError):
        verifier(ca, at=NOW).build_client_verifier().verify(issued(ca, CertificateKind.SERVER), [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_ends_when_its_days_are_over(ca: KeyPair, kind: CertificateKind) -> None:
    certificate = issued(ca, kind, days=90)

    assert certificate.not_valid_after_utc == NOW + timedelta(days=90)
    assert certificate.not_valid_before_utc < NOW


def test_no_certificate_outlives_its_authority(ca: KeyPair) -> None:
    late = NOW + timedelta(days=CA_DAYS - 10)

    pair = opened(ca).issue(request(CertificateKind.AGENT, days=90), now=late)

    end = x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc
    assert end == NOW + timedelta(days=CA_DAYS)


def test_two_certificates_share_neither_key_nor_serial(ca: KeyPair) -> None:
    first, second = (issued(ca, CertificateKind.AGENT) for _ in range(2))

    assert first.serial_number != second.serial_number
    assert first.public_key() != second.public_key()


def test_openssl_takes_key_and_certificate(
    ca: KeyPair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pair")
    pair = opened(ca).issue(request(CertificateKind.SERVER), now=NOW)
    (folder / "x.crt").write_bytes(pair.certificate)
    (folder / "x.key").write_bytes(pair.key)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "x.crt", folder / "x.key")
    context.load_verify_locations(cadata=ca.certificate.decode())
    assert context.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize(
    "name", ["", ".x", "-x", "_x", "a/b", "../x", "a b", "a\nb", "ä", "a\x00b", "x" * 64]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_could_leave_its_folder_is_refused(kind: CertificateKind, name: str) -> None:
    with pytest.raises(BadInputError, match="cannot name the"):
        request(kind, name)


@pytest.mark.parametrize("name", ["a", "7", "GPU-7.example_org", "x" * 63])
def test_a_plain_name_is_taken(ca: KeyPair, name: str) -> None:
    pair = opened(ca).issue(request(CertificateKind.AGENT, name), now=NOW)

    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    assert uris == [f"spiffe://spotwright/agent/{name}"]


@pytest.mark.parametrize("days", [0, -1, CA_DAYS + 1])
def test_days_that_make_no_sense_are_refused(days: float) -> None:
    with pytest.raises(BadInputError, match="valid for 1 to 3650 days"):
        request(CertificateKind.AGENT, days=days)


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("a b", "neither"), ("", "neither"), ("-a.example", "neither"), ("a..b", "neither"),
        ("https://a.example", "neither"), ("a.example:7443", "neither"), ("10.0.0.0/8", "neither"),
        ("x" * 64, "neither"), ("0.0.0.0", "where to listen"), ("::", "where to listen"),
    ],
)  # fmt: skip
def test_a_host_that_nobody_can_call_is_refused(host: str, complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        CertificateRequest(kind=CertificateKind.SERVER, name="x", days=1, hosts=(host,))
