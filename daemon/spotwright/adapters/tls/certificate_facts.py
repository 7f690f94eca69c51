"""What a certificate says: whom it is for, until when, and who made it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from spotwright.adapters.tls.authority import CLOCK_SKEW, TRUST_DOMAIN

_DAY_S = 86_400
_FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What a certificate in a folder says."""

    file: str  # within the folder, without its ending: server, agents/gpu-7
    kind: str  # ca, server, client, agent or foreign
    name: str
    serial: str
    start_time: datetime
    expire_time: datetime
    hosts: tuple[str, ...]
    of_this_ca: bool

    def days_left(self, now: datetime) -> float:
        """Return the days until it ends; negative when it has ended."""
        return (self.expire_time - now).total_seconds() / _DAY_S

    @property
    def valid_days(self) -> float:
        """For how many days it was issued."""
        return (self.expire_time - self.start_time - CLOCK_SKEW).total_seconds() / _DAY_S


def facts_of(
    file: str, certificate: x509.Certificate, *, authorities: Sequence[x509.Certificate]
) -> CertificateFacts:
    """Return what a certificate says, and whether one of these authorities made it.

    Raises:
        ValueError: its extensions cannot be read.
    """
    kind, name = _identity(certificate)
    return CertificateFacts(
        file=file,
        kind=kind,
        name=name,
        serial=f"{certificate.serial_number:x}",
        start_time=certificate.not_valid_before_utc,
        expire_time=certificate.not_valid_after_utc,
        hosts=_hosts(certificate),
        of_this_ca=any(_made_by(authority, certificate) for authority in authorities),
    )


def _identity(certificate: x509.Certificate) -> tuple[str, str]:
    prefix = f"spiffe://{TRUST_DOMAIN}/"
    for uri in _alternative_names(certificate).get_values_for_type(x509.UniformResourceIdentifier):
        kind, _, name = uri.removeprefix(prefix).partition("/")
        if uri.startswith(prefix) and name:
            return kind, name
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[0].value) if names else certificate.subject.rfc4514_string()
    return ("ca" if _made_by(certificate, certificate) else _FOREIGN), name


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    names = _alternative_names(certificate)
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def _alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])
    return found.value


def _made_by(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
