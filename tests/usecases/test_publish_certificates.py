"""Certificates for the hosts of a fleet, on a shelf in memory."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.offer import Market, Pool
from spotwright.domain.rental import GrantedFleet, GrantedNode
from spotwright.usecases.publish_certificates import CertificateIssuer, publish_certificates
from spotwright.usecases.rental_ports import AgentCertificate, CertificateTerm
from tests.fakes.memory_certificate_shelf import MemoryCertificateShelf

NOW = datetime(2026, 11, 18, 7, 30, tzinfo=UTC)
LIFE = timedelta(days=90)


class Running:
    """A cloud in which these hosts run, under one fleet's name."""

    def __init__(self, *instance_ids: str) -> None:
        self.instance_ids = instance_ids

    def granted(self, fleet_name: str) -> GrantedFleet:
        ids = self.instance_ids if fleet_name == "resnet50" else ()
        return GrantedFleet(nodes=tuple(map(_node, sorted(ids))), groups=())

    def spot_prices_usd_per_hour(self, pools: Collection[Pool]) -> Mapping[Pool, float]:
        return {}

    def end_node(self, instance_id: str, *, is_replaced: bool) -> None:
        raise AssertionError("who publishes certificates ends no node")


def _node(instance_id: str) -> GrantedNode:
    return GrantedNode(
        instance_id=instance_id, pool_key=None, instance_type="g5.xlarge", zone="use1-az4",
        market=Market.SPOT, launch_time=NOW,
    )  # fmt: skip


def issued(instance_id: str, now: datetime, authority: str = "a1") -> AgentCertificate:
    term = CertificateTerm(authority=authority, start_time=now, expire_time=now + LIFE)
    return AgentCertificate(certificate_pem=instance_id.encode(), key_pem=b"key", term=term)


def published(
    shelf: MemoryCertificateShelf, *instance_ids: str, now: datetime = NOW, authority: str = "a1"
) -> list[tuple[str, str]]:
    issuer = CertificateIssuer(
        authority=authority, issue=lambda name, time: issued(name, time, authority)
    )
    steps = publish_certificates(
        "resnet50", fleets=Running(*instance_ids), shelf=shelf, issuer=issuer, now=now
    )
    return [(step.step.value, step.instance_id) for step in steps]


def test_each_host_without_a_certificate_gets_its_own() -> None:
    shelf = MemoryCertificateShelf()

    assert published(shelf, "i-2", "i-1") == [("issued", "i-1"), ("issued", "i-2")]
    assert {name: c.certificate_pem for name, c in shelf.certificates.items()} == {
        "i-1": b"i-1",
        "i-2": b"i-2",
    }


def test_a_second_round_changes_nothing() -> None:
    shelf = MemoryCertificateShelf()
    published(shelf, "i-1", "i-2")
    before = dict(shelf.certificates)

    assert published(shelf, "i-1", "i-2") == [("kept", "i-1"), ("kept", "i-2")]
    assert shelf.certificates == before


@pytest.mark.parametrize(("age_days", "step"), [(59.9, "kept"), (60, "renewed"), (200, "renewed")])
def test_a_certificate_is_renewed_in_the_last_third_of_its_life(age_days: float, step: str) -> None:
    shelf = MemoryCertificateShelf()
    published(shelf, "i-1")

    later = NOW + timedelta(days=age_days)
    assert published(shelf, "i-1", now=later) == [(step, "i-1")]
    end = shelf.certificates["i-1"].term.expire_time
    assert end == (later if step == "renewed" else NOW) + LIFE


def test_a_certificate_of_another_authority_is_renewed() -> None:
    shelf = MemoryCertificateShelf()
    published(shelf, "i-1")

    assert published(shelf, "i-1", authority="b2") == [("renewed", "i-1")]
    assert published(shelf, "i-1", authority="b2") == [("kept", "i-1")]


def test_a_certificate_whose_term_cannot_be_told_is_renewed() -> None:
    class Forgetful(MemoryCertificateShelf):
        def terms(self) -> dict[str, CertificateTerm | None]:
            return dict.fromkeys(self.certificates)

    shelf = Forgetful()
    published(shelf, "i-1")

    assert published(shelf, "i-1") == [("renewed", "i-1")]


def test_the_certificate_of_a_host_that_is_gone_is_removed() -> None:
    shelf = MemoryCertificateShelf()
    published(shelf, "i-1", "i-2")

    assert published(shelf, "i-2", "i-3") == [
        ("issued", "i-3"), ("kept", "i-2"), ("removed", "i-1"),
    ]  # fmt: skip
    assert shelf.certificates.keys() == {"i-2", "i-3"}


def test_a_round_that_fails_is_taken_up_where_it_ended() -> None:
    shelf = MemoryCertificateShelf(room_count=1)

    with pytest.raises(OutsideWorldError, match="full"):
        published(shelf, "i-1", "i-2")
    assert shelf.certificates.keys() == {"i-1"}

    shelf.room_count = 2
    assert published(shelf, "i-1", "i-2") == [("issued", "i-2"), ("kept", "i-1")]
