"""What renting needs from outside: the fleet that a cloud runs, and a shelf for certificates."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from spotwright.domain.offer import Pool
from spotwright.domain.rental import GrantedFleet


class RentedFleets(Protocol):
    """The instances of one region, as its cloud tells them."""

    def granted(self, fleet_name: str) -> GrantedFleet:
        """Return what runs or starts under a fleet's name.

        Raises:
            OutsideWorldError: the cloud failed or refused to answer.
        """

    def spot_prices_usd_per_hour(self, pools: Collection[Pool]) -> Mapping[Pool, float]:
        """Return what spot nodes cost there now; a pool without a price is left out."""

    def end_node(self, instance_id: str, *, is_replaced: bool) -> None:
        """End a node of a group.

        Args:
            instance_id: which one.
            is_replaced: the group starts another one in its place; else it keeps one node less.

        Raises:
            OutsideWorldError: the cloud failed or refused, or no group has that node.
        """


OpenRentedFleets = Callable[[str], RentedFleets]  # by the name of a region


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateTerm:
    """Who made a certificate, and from when to when it is valid."""

    authority: str  # a new one has another; of hex digits
    start_time: datetime
    expire_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCertificate:
    """The certificate of one host's agent, with its key."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    term: CertificateTerm


class CertificateShelf(Protocol):
    """Where the hosts of one fleet fetch their certificates; each may read its own, no other.

    Each method raises OutsideWorldError where the shelf failed or refused to answer.
    """

    def terms(self) -> Mapping[str, CertificateTerm | None]:
        """Return by instance id for whom there is one; None: its term cannot be told."""

    def put(self, instance_id: str, certificate: AgentCertificate) -> None:
        """Keep a host's certificate, in place of the one there was."""

    def remove(self, instance_id: str) -> None:
        """Forget one; without one, nothing happens."""
