"""Certificates for the hosts of a rented fleet, put where each host fetches its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from spotwright.usecases.rental_ports import (
    AgentCertificate,
    CertificateShelf,
    CertificateTerm,
    RentedFleets,
)

_RENEWED_SHARE = 1 / 3  # of its life is left: hosts look daily, and whoever publishes may be away


class Step(StrEnum):
    """What was done for a host."""

    ISSUED = "issued"
    RENEWED = "renewed"
    KEPT = "kept"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStep:
    """How one host's certificate fared."""

    step: Step
    instance_id: str
    expire_time: datetime | None  # None: it was removed


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateIssuer:
    """An authority that is at hand."""

    authority: str  # as in CertificateTerm
    issue: Callable[[str, datetime], AgentCertificate]  # for an instance id, from a time on


def publish_certificates(
    fleet_name: str,
    *,
    fleets: RentedFleets,
    shelf: CertificateShelf,
    issuer: CertificateIssuer,
    now: datetime,
) -> Iterator[HostStep]:
    """Give each host of a fleet a certificate, and tell each step once it is done.

    Hosts without one come first, because they wait for it. A certificate is renewed in the last
    third of its life and where another authority made it; that of a host that is gone is removed.

    Raises:
        OutsideWorldError: the cloud or the shelf failed; what was told before that is done.
    """
    # The shelf is read first: a host that starts in between is issued one, never taken for gone.
    terms = shelf.terms()
    running = [node.instance_id for node in fleets.granted(fleet_name).nodes]
    for instance_id in sorted(running, key=lambda name: (name in terms, name)):
        term, step = terms.get(instance_id), Step.KEPT
        if term is None or _is_due(term, issuer.authority, now):
            certificate = issuer.issue(instance_id, now)
            shelf.put(instance_id, certificate)
            term, step = certificate.term, Step.RENEWED if instance_id in terms else Step.ISSUED
        yield HostStep(step=step, instance_id=instance_id, expire_time=term.expire_time)
    for instance_id in sorted(terms.keys() - set(running)):
        shelf.remove(instance_id)
        yield HostStep(step=Step.REMOVED, instance_id=instance_id, expire_time=None)


def _is_due(term: CertificateTerm, authority: str, now: datetime) -> bool:
    life = term.expire_time - term.start_time
    return term.authority != authority or term.expire_time - now <= life * _RENEWED_SHARE
