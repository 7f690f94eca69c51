"""What every CertificateShelf must do: the one in memory, Parameter Store and Secrets Manager.

A shelf under test is empty, and is that of one fleet:

    class TestMyShelf(CertificateShelfContract):
        @pytest.fixture
        def shelf(self) -> CertificateShelf: ...
"""

from datetime import UTC, datetime

from spotwright.usecases.rental_ports import AgentCertificate, CertificateShelf, CertificateTerm

START = datetime(2026, 11, 18, 7, 25, tzinfo=UTC)
END = datetime(2027, 2, 16, 7, 30, tzinfo=UTC)


def example_certificate(
    name: str = "first", *, authority: str = "0a1b", expire_time: datetime = END
) -> AgentCertificate:
    return AgentCertificate(
        certificate_pem=f"-----BEGIN CERTIFICATE-----\n{name}\n".encode(),
        key_pem=f"-----BEGIN PRIVATE KEY-----\n{name}\n".encode(),
        term=CertificateTerm(authority=authority, start_time=START, expire_time=expire_time),
    )


class CertificateShelfContract:
    def test_a_new_shelf_is_empty(self, shelf: CertificateShelf) -> None:
        assert shelf.terms() == {}

    def test_terms_of_what_was_put_are_told_by_instance(self, shelf: CertificateShelf) -> None:
        later = example_certificate(authority="ff", expire_time=END.replace(year=2030))

        shelf.put("i-1", example_certificate())
        shelf.put("i-2", later)

        assert shelf.terms() == {"i-1": example_certificate().term, "i-2": later.term}

    def test_a_second_certificate_of_a_host_takes_the_place_of_the_first(
        self, shelf: CertificateShelf
    ) -> None:
        renewed = example_certificate("second", expire_time=END.replace(year=2030))

        shelf.put("i-1", example_certificate())
        shelf.put("i-1", renewed)

        assert shelf.terms() == {"i-1": renewed.term}

    def test_only_the_one_that_is_removed_is_gone(self, shelf: CertificateShelf) -> None:
        shelf.put("i-1", example_certificate())
        shelf.put("i-10", example_certificate())

        shelf.remove("i-1")

        assert shelf.terms().keys() == {"i-10"}

    def test_one_that_is_not_there_can_be_removed(self, shelf: CertificateShelf) -> None:
        shelf.remove("i-1")

        assert shelf.terms() == {}

    def test_one_that_was_removed_can_be_put_again(self, shelf: CertificateShelf) -> None:
        shelf.put("i-1", example_certificate())
        shelf.remove("i-1")

        shelf.put("i-1", example_certificate("second"))

        assert shelf.terms().keys() == {"i-1"}

    def test_more_than_a_page_of_hosts_are_told(self, shelf: CertificateShelf) -> None:
        names = {f"i-{number:03}" for number in range(120)}

        for name in names:
            shelf.put(name, example_certificate())

        assert shelf.terms().keys() == names
