"""Two shelves for the certificates of hosts: SSM's Parameter Store, and Secrets Manager.

A certificate and its key are one text, encrypted by the account's own key, under
/spotwright/FLEET/agents/INSTANCE_ID. Its tag SpotwrightInstance is the ARN of the one instance
that may read it: docs/decisions/0011-certificates-of-rented-hosts.md. The term stands in the
description, which is written together with the text; tags would be a call of their own.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from boto3.session import Session
from botocore.config import Config

from spotwright.adapters.aws.refusals import asking
from spotwright.usecases.rental_ports import AgentCertificate, CertificateTerm

INSTANCE_TAG = "SpotwrightInstance"
FLEET_TAG = "Fleet"

# Parameter Store takes a few writes per second; adaptive calls slow down to what is let through.
_CONFIG = Config(
    connect_timeout=5, read_timeout=20, retries={"mode": "adaptive", "total_max_attempts": 10}
)
_DESCRIBED = re.compile(r"Spotwright agent; authority ([0-9a-f]+), valid from (\S+) to (\S+)")


class ParameterStoreShelf:
    """Parameters of type SecureString, in the standard tier."""

    def __init__(
        self, fleet_name: str, *, region: str, open_session: Callable[[], Session] = Session
    ) -> None:
        """Find the credentials, as the AWS tools do; nothing is asked yet."""
        with asking("credentials and endpoints", region=region):
            session = open_session()
            self._ssm = _client(session, "ssm", region)
            self._owners = _Owners(session, fleet_name=fleet_name, region=region)
        self._region, self._folder = region, f"/spotwright/{fleet_name}/agents"

    def terms(self) -> Mapping[str, CertificateTerm | None]:
        """Return by instance id for whom there is one; None: its term cannot be told."""
        own = [{"Key": "Path", "Option": "OneLevel", "Values": [self._folder]}]
        with asking("ssm:DescribeParameters", region=self._region):
            pages = self._ssm.get_paginator("describe_parameters").paginate(ParameterFilters=own)
            return _terms((found for page in pages for found in page["Parameters"]), self._folder)

    def put(self, instance_id: str, certificate: AgentCertificate) -> None:
        """Keep a host's certificate, in place of the one there was."""
        name, tags = f"{self._folder}/{instance_id}", self._owners.tags(instance_id)
        content = {"Name": name, "Type": "SecureString"} | {
            "Value": _value(certificate),
            "Description": _description(certificate.term),
        }
        with asking("ssm:PutParameter and ssm:AddTagsToResource", region=self._region):
            try:
                self._ssm.put_parameter(**content, Tags=tags)
            except self._ssm.exceptions.ParameterAlreadyExists:
                # One call cannot do both. Tags first: no key is ever under another host's tag.
                self._ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=name, Tags=tags)
                self._ssm.put_parameter(**content, Overwrite=True)

    def remove(self, instance_id: str) -> None:
        """Forget one; without one, nothing happens."""
        with asking("ssm:DeleteParameter", region=self._region):
            try:
                self._ssm.delete_parameter(Name=f"{self._folder}/{instance_id}")
            except self._ssm.exceptions.ParameterNotFound:
                return


class SecretsManagerShelf:
    """Secrets; each costs money by the month, and is gone at once when removed."""

    def __init__(
        self, fleet_name: str, *, region: str, open_session: Callable[[], Session] = Session
    ) -> None:
        """Find the credentials, as the AWS tools do; nothing is asked yet."""
        with asking("credentials and endpoints", region=region):
            session = open_session()
            self._secrets = _client(session, "secretsmanager", region)
            self._owners = _Owners(session, fleet_name=fleet_name, region=region)
        self._region, self._folder = region, f"spotwright/{fleet_name}/agents"

    def terms(self) -> Mapping[str, CertificateTerm | None]:
        """Return by instance id for whom there is one; None: its term cannot be told."""
        own = [{"Key": "name", "Values": [f"{self._folder}/"]}]
        with asking("secretsmanager:ListSecrets", region=self._region):
            pages = self._secrets.get_paginator("list_secrets").paginate(Filters=own)
            return _terms((found for page in pages for found in page["SecretList"]), self._folder)

    def put(self, instance_id: str, certificate: AgentCertificate) -> None:
        """Keep a host's certificate, in place of the one there was."""
        name, tags = f"{self._folder}/{instance_id}", self._owners.tags(instance_id)
        content = {
            "SecretString": _value(certificate),
            "Description": _description(certificate.term),
        }
        actions = "CreateSecret, secretsmanager:TagResource and secretsmanager:UpdateSecret"
        with asking(f"secretsmanager:{actions}", region=self._region):
            try:
                self._secrets.create_secret(Name=name, Tags=tags, **content)
            except self._secrets.exceptions.ResourceExistsException:
                self._secrets.tag_resource(SecretId=name, Tags=tags)  # first, as above
                self._secrets.update_secret(SecretId=name, **content)

    def remove(self, instance_id: str) -> None:
        """Forget one; without one, nothing happens."""
        name = f"{self._folder}/{instance_id}"
        with asking("secretsmanager:DeleteSecret", region=self._region):
            try:
                # Else it could be restored for a month, and its name would be taken as long.
                self._secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
            except self._secrets.exceptions.ResourceNotFoundException:
                return


class _Owners:
    """Who may read what: the tags of a host's certificate."""

    def __init__(self, session: Session, *, fleet_name: str, region: str) -> None:
        self._sts = _client(session, "sts", region)
        self._fleet_name, self._region = fleet_name, region
        self._of_instances = ""  # what the ARNs of this account's instances begin with

    def tags(self, instance_id: str) -> list[dict[str, str]]:
        """Return the tags by which an instance may read its own, and no other may."""
        if not self._of_instances:
            with asking("sts:GetCallerIdentity", region=self._region):
                caller = self._sts.get_caller_identity()
                partition = caller["Arn"].split(":")[1]
                account = f"{self._region}:{caller['Account']}"
            self._of_instances = f"arn:{partition}:ec2:{account}:instance/"
        return [
            {"Key": INSTANCE_TAG, "Value": f"{self._of_instances}{instance_id}"},
            {"Key": FLEET_TAG, "Value": self._fleet_name},
        ]


def _client(session: Session, service: str, region: str) -> Any:
    # Any: the type stubs of these services are not installed.
    return session.client(service, region_name=region, config=_CONFIG)  # type: ignore[call-overload]


def _terms(
    entries: Iterable[Mapping[str, Any]], folder: str
) -> Mapping[str, CertificateTerm | None]:
    """Return the terms of what is right under a folder, by what it is called there."""
    named = {entry["Name"].removeprefix(f"{folder}/"): entry for entry in entries}
    return {
        name: _read_description(entry.get("Description", ""))
        for name, entry in named.items()
        if "/" not in name
    }


def _value(certificate: AgentCertificate) -> str:
    return (certificate.certificate_pem + certificate.key_pem).decode("ascii")


def _description(term: CertificateTerm) -> str:
    start, end = term.start_time.isoformat(), term.expire_time.isoformat()
    return f"Spotwright agent; authority {term.authority}, valid from {start} to {end}"


def _read_description(text: str) -> CertificateTerm | None:
    """Return the term, or None where a person has written something else there."""
    found = _DESCRIBED.fullmatch(text)
    try:
        start_time, expire_time = map(datetime.fromisoformat, found.groups()[1:] if found else ())
    except ValueError:
        return None
    if found is None or start_time.tzinfo is None or expire_time.tzinfo is None:
        return None
    return CertificateTerm(authority=found[1], start_time=start_time, expire_time=expire_time)
