"""Our own certificate authority: it vouches for one daemon, its clients and its agents.

Who a certificate is for stands in a URI of its alternative names, spiffe://spotwright/KIND/NAME,
and for people to read also as its common name. Keys are ECDSA P-256.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spotwright.domain.errors import BadInputError

TRUST_DOMAIN = "spotwright"
CA_DAYS = 3650
CLOCK_SKEW = timedelta(minutes=5)  # a host whose clock is a little behind accepts a new one
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_DNS_LABEL = r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)"
_DNS_NAME = re.compile(rf"(?:\*\.)?{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


class CertificateKind(StrEnum):
    """What a certificate may be used for."""

    SERVER = "server"
    CLIENT = "client"  # opens the connection; who calls is said by a token
    AGENT = "agent"  # is the agent's identity


DEFAULT_DAYS = {CertificateKind.SERVER: 365, CertificateKind.CLIENT: 90, CertificateKind.AGENT: 90}


class KeyPair(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """What a certificate is to say."""

    kind: CertificateKind
    name: str
    days: float
    hosts: tuple[str, ...] = ()  # of a server: DNS names and addresses it is reached by

    def __post_init__(self) -> None:
        check_name(self.kind, self.name)
        if not 0 < self.days <= CA_DAYS:
            raise BadInputError(
                f"a certificate is valid for 1 to {CA_DAYS} days, got {self.days:g}"
            )
        for host in self.hosts:
            _general_name(host)


def check_name(kind: CertificateKind, name: str) -> None:
    """Raise BadInputError where a name cannot stand in a certificate, a path and a file name."""
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"cannot name the {kind} {name!r}: use 1 to 63 letters, digits, dots, dashes "
            "and underscores, a letter or digit first"
        )


class Authority:
    """A CA whose key is at hand."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate, self._key = certificate, key

    def issue(self, request: CertificateRequest, *, now: datetime) -> KeyPair:
        """Make a key, and a certificate for it that ends no later than the CA's own."""
        key = ec.generate_private_key(ec.SECP256R1())
        end = min(now + timedelta(days=request.days), self._certificate.not_valid_after_utc)
        builder = (
            _builder(request.name, key, start=now - CLOCK_SKEW, end=end)
            .issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([_purpose(request.kind)]), critical=False)
            .add_extension(_alternative_names(request), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        return _signed(builder, key, signer=self._key)


def make_authority(*, now: datetime) -> KeyPair:
    """Make a CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    # A number in the name keeps two CAs of one host apart when both are trusted for a while.
    name = f"spotwright CA {x509.random_serial_number() % 16**8:08x}"
    builder = (
        _builder(name, key, start=now - CLOCK_SKEW, end=now + timedelta(days=CA_DAYS))
        .issuer_name(_named(name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return _signed(builder, key, signer=key)


def _builder(
    name: str, key: ec.EllipticCurvePrivateKey, *, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    *,
    signer: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    certificate = builder.sign(signer, hashes.SHA256())
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _purpose(kind: CertificateKind) -> x509.ObjectIdentifier:
    # One purpose each: a stolen server key must not open connections as a client.
    if kind is CertificateKind.SERVER:
        return ExtendedKeyUsageOID.SERVER_AUTH
    return ExtendedKeyUsageOID.CLIENT_AUTH


def _alternative_names(request: CertificateRequest) -> x509.SubjectAlternativeName:
    uri = f"spiffe://{TRUST_DOMAIN}/{request.kind}/{request.name}"
    hosts: Sequence[str] = ()
    if request.kind is CertificateKind.SERVER:
        hosts = tuple(dict.fromkeys((*request.hosts, *_LOCAL_HOSTS)))
    return x509.SubjectAlternativeName(
        [x509.UniformResourceIdentifier(uri), *map(_general_name, hosts)]
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if _DNS_NAME.fullmatch(host) and len(host) <= 253:
            return x509.DNSName(host)
        raise BadInputError(
            f"--host {host!r} is neither a DNS name nor an IP address; give what clients call the "
            "daemon by"
        ) from None
    if address.is_unspecified:
        raise BadInputError(
            f"--host {host} is where to listen, but nobody can call it; give the name or address "
            "that clients call the daemon by"
        )
    return x509.IPAddress(address)
