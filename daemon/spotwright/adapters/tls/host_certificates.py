"""Certificates for the hosts of a rented fleet, made in memory: no key of a host is in a file."""

from datetime import datetime
from pathlib import Path

from cryptography import x509

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.certificate_facts import facts_of
from spotwright.adapters.tls.certificate_files import CA, open_authority, read_facts
from spotwright.usecases.publish_certificates import CertificateIssuer
from spotwright.usecases.rental_ports import AgentCertificate, CertificateTerm


def host_issuer(folder: Path, *, days: float) -> CertificateIssuer:
    """Return what issues certificates of a folder's authority to the agents of hosts.

    Raises:
        BadInputError: the folder has no authority that can issue.
    """
    authority = open_authority(folder)
    [ours] = read_facts(folder, [CA])

    def issue(instance_id: str, now: datetime) -> AgentCertificate:
        request = CertificateRequest(kind=CertificateKind.AGENT, name=instance_id, days=days)
        pair = authority.issue(request, now=now)
        made = facts_of("", x509.load_pem_x509_certificate(pair.certificate), authorities=())
        term = CertificateTerm(
            authority=ours.serial, start_time=made.start_time, expire_time=made.expire_time
        )
        return AgentCertificate(certificate_pem=pair.certificate, key_pem=pair.key, term=term)

    return CertificateIssuer(authority=ours.serial, issue=issue)
