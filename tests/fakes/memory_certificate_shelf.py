"""A shelf that keeps certificates in memory, and can fail."""

from collections.abc import Mapping

from spotwright.domain.errors import OutsideWorldError
from spotwright.usecases.rental_ports import AgentCertificate, CertificateTerm


class MemoryCertificateShelf:
    """Takes as many certificates as there is room for."""

    def __init__(self, *, room_count: int = 1_000) -> None:
        self.certificates: dict[str, AgentCertificate] = {}
        self.room_count = room_count

    def terms(self) -> Mapping[str, CertificateTerm | None]:
        return {name: certificate.term for name, certificate in self.certificates.items()}

    def put(self, instance_id: str, certificate: AgentCertificate) -> None:
        if len(self.certificates) >= self.room_count:
            raise OutsideWorldError("the shelf is full")
        self.certificates[instance_id] = certificate

    def remove(self, instance_id: str) -> None:
        self.certificates.pop(instance_id, None)
