"""The shelves of AWS, against an emulated account, and the fake beside them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.model import OperationModel
from moto import mock_aws

from spotwright.adapters.aws.certificate_shelf import ParameterStoreShelf, SecretsManagerShelf
from spotwright.domain.errors import OutsideWorldError
from spotwright.usecases.rental_ports import CertificateShelf
from tests.contracts.certificate_shelf import CertificateShelfContract, example_certificate
from tests.fakes.memory_certificate_shelf import MemoryCertificateShelf

REGION = "eu-central-1"
PEM = "-----BEGIN CERTIFICATE-----\n{0}\n-----BEGIN PRIVATE KEY-----\n{0}\n"


@pytest.fixture
def account() -> Iterator[boto3.Session]:
    with mock_aws():
        yield boto3.Session()


class TestMemoryShelf(CertificateShelfContract):
    @pytest.fixture
    def shelf(self) -> CertificateShelf:
        return MemoryCertificateShelf()


class TestParameterStoreShelf(CertificateShelfContract):
    @pytest.fixture
    def shelf(self, account: boto3.Session) -> CertificateShelf:
        return ParameterStoreShelf("resnet50", region=REGION, open_session=lambda: account)


class TestSecretsManagerShelf(CertificateShelfContract):
    @pytest.fixture
    def shelf(self, account: boto3.Session) -> CertificateShelf:
        return SecretsManagerShelf("resnet50", region=REGION, open_session=lambda: account)


@dataclass(frozen=True)
class Parameters:
    """Parameter Store as anyone may use it, with one entry per name."""

    api: Any
    kind = ParameterStoreShelf
    name = "/spotwright/{}/agents/{}"

    def create(self, name: str, *, tags: dict[str, str]) -> None:
        self.api.put_parameter(
            Name=name, Value="by hand", Type="SecureString", Description="by hand", Tags=pairs(tags)
        )

    def value(self, name: str) -> str:
        return str(self.api.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])

    def tags(self, name: str) -> dict[str, str]:
        found = self.api.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)
        return {tag["Key"]: tag["Value"] for tag in found["TagList"]}


@dataclass(frozen=True)
class Secrets:
    """Secrets Manager as anyone may use it."""

    api: Any
    kind = SecretsManagerShelf
    name = "spotwright/{}/agents/{}"

    def create(self, name: str, *, tags: dict[str, str]) -> None:
        self.api.create_secret(
            Name=name, SecretString="by hand", Description="by hand", Tags=pairs(tags)
        )

    def value(self, name: str) -> str:
        return str(self.api.get_secret_value(SecretId=name)["SecretString"])

    def tags(self, name: str) -> dict[str, str]:
        found = self.api.describe_secret(SecretId=name)["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}


Store = Parameters | Secrets


def pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


@pytest.fixture(params=["ssm", "secretsmanager"])
def store(request: pytest.FixtureRequest, account: boto3.Session) -> Store:
    api: Any = account.client(request.param, region_name=REGION)
    return Parameters(api) if request.param == "ssm" else Secrets(api)


@pytest.fixture
def shelf(store: Store, account: boto3.Session) -> CertificateShelf:
    return store.kind("resnet50", region=REGION, open_session=lambda: account)


def test_a_certificate_is_one_text_tagged_with_the_one_instance_that_may_read_it(
    shelf: CertificateShelf, store: Store
) -> None:
    shelf.put("i-1", example_certificate())

    name = store.name.format("resnet50", "i-1")
    assert store.value(name) == PEM.format("first")
    assert store.tags(name) == {
        "SpotwrightInstance": f"arn:aws:ec2:{REGION}:123456789012:instance/i-1",
        "Fleet": "resnet50",
    }


def test_a_parameter_is_encrypted_and_costs_nothing(account: boto3.Session) -> None:
    ParameterStoreShelf("f", region=REGION, open_session=lambda: account).put(
        "i-1", example_certificate()
    )

    api: Any = account.client("ssm", region_name=REGION)
    [found] = api.describe_parameters()["Parameters"]
    assert (found["Type"], found["Tier"]) == ("SecureString", "Standard")


def test_what_another_host_may_read_is_given_its_right_tag_before_the_new_key(
    store: Store, account: boto3.Session
) -> None:
    name, own = store.name.format("resnet50", "i-1"), f"arn:aws:ec2:{REGION}:123456789012:instance/"
    store.create(name, tags={"SpotwrightInstance": f"{own}i-2"})
    seen: list[tuple[str, str]] = []

    def look(**_: object) -> None:
        seen.append((store.value(name)[:7], store.tags(name)["SpotwrightInstance"]))

    account.events.register("before-call", look)  # of the shelf's calls; the store's are older
    store.kind("resnet50", region=REGION, open_session=lambda: account).put(
        "i-1", example_certificate()
    )
    look()

    assert seen[0] == ("by hand", f"{own}i-2")
    assert seen[-2:] == [("by hand", f"{own}i-1"), ("-----BE", f"{own}i-1")]


def test_a_description_that_a_person_wrote_leaves_the_term_untold(
    shelf: CertificateShelf, store: Store
) -> None:
    store.create(store.name.format("resnet50", "i-1"), tags={"SpotwrightInstance": "x"})

    assert shelf.terms() == {"i-1": None}


def test_another_fleet_whose_name_begins_alike_is_left_out(
    shelf: CertificateShelf, store: Store, account: boto3.Session
) -> None:
    other = store.kind("resnet50-large", region=REGION, open_session=lambda: account)

    other.put("i-1", example_certificate())
    store.create(store.name.format("resnet50", "more/i-2"), tags={"Fleet": "x"})

    assert shelf.terms() == {}


def test_a_key_is_not_told_where_a_certificate_is_printed() -> None:
    certificate = example_certificate()

    assert "PRIVATE" not in repr(certificate)
    assert "CERTIFICATE" in repr(certificate)


@pytest.mark.parametrize("action", ["terms", "put", "remove"])
def test_each_refusal_says_what_to_allow(store: Store, account: boto3.Session, action: str) -> None:
    def refuse(model: OperationModel, **_: object) -> Any:
        if model.name == "GetCallerIdentity":
            return None
        said = {"Error": {"Code": "AccessDeniedException", "Message": f"no {model.name}"}}
        return AWSResponse("", 400, HTTPHeaders(), None), said

    account.events.register("before-call", refuse)
    shelf = store.kind("resnet50", region=REGION, open_session=lambda: account)
    arguments = {"terms": (), "put": ("i-1", example_certificate()), "remove": ("i-1",)}[action]

    with pytest.raises(OutsideWorldError) as refused:
        getattr(shelf, action)(*arguments)

    assert "PRIVATE KEY" not in str(refused.value)
    [asked] = re.findall("no ([A-Za-z]+)", str(refused.value))
    assert f":{asked}" in str(refused.value).partition("allow the IAM action")[2]
