"""The account's vCPU quotas, by region, class of instance families and market."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spotwright.adapters.aws.refusals import asking
from spotwright.domain.catalog import QuotaKey
from spotwright.domain.quota import QUOTA_CODES

if TYPE_CHECKING:
    from mypy_boto3_service_quotas.type_defs import ServiceQuotaTypeDef

    from spotwright.adapters.aws.connection import RegionClients


@dataclass(frozen=True, slots=True)
class Quotas:
    """The vCPUs the account may run, and which quotas AWS did not tell."""

    vcpu_counts: Mapping[QuotaKey, int]
    notes: tuple[str, ...] = ()


def fetch_quotas(clients: RegionClients, *, classes: Collection[str]) -> Quotas:
    """Return the region's quotas for the given classes."""
    with asking("servicequotas:ListServiceQuotas", region=clients.region):
        pages = clients.quotas.get_paginator("list_service_quotas").paginate(ServiceCode="ec2")
        listed = (quota for page in pages for quota in page["Quotas"])
        return read_quotas(listed, region=clients.region, classes=classes)


def read_quotas(
    listed: Iterable[ServiceQuotaTypeDef], *, region: str, classes: Collection[str]
) -> Quotas:
    """Read the quotas of a ListServiceQuotas reply that limit the given classes."""
    value_by_code = {quota["QuotaCode"]: quota["Value"] for quota in listed}
    counts, notes = {}, []
    for (quota_class, market), code in QUOTA_CODES.items():
        if quota_class not in classes:
            continue
        if code in value_by_code:
            counts[QuotaKey(region, quota_class, market)] = int(value_by_code[code])
        else:
            notes.append(
                f"no {market} quota of class {quota_class} ({code}) is listed in {region}: "
                f"plans there are not limited by it"
            )
    return Quotas(counts, tuple(notes))
