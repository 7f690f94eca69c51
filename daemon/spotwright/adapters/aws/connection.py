"""The boto3 clients of one region, with bounded waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.config import Config

if TYPE_CHECKING:
    from boto3.session import Session
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_service_quotas import ServiceQuotasClient

PRICING_REGION = "us-east-1"  # the price list of every region is served from here

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=20,
    retries={"mode": "standard", "total_max_attempts": 4},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionClients:
    """What one region is asked through."""

    region: str
    ec2: EC2Client
    quotas: ServiceQuotasClient
    pricing: PricingClient


def connect(session: Session, *, regions: tuple[str, ...]) -> list[RegionClients]:
    """Make the clients of each region, in one thread: a boto3 session is not thread-safe."""
    pricing = session.client("pricing", region_name=PRICING_REGION, config=_CONFIG)
    return [
        RegionClients(
            region=region,
            ec2=session.client("ec2", region_name=region, config=_CONFIG),
            quotas=session.client("service-quotas", region_name=region, config=_CONFIG),
            pricing=pricing,
        )
        for region in regions
    ]


def connect_scaling(session: Session, *, region: str) -> Any:
    """Make the client of Auto Scaling; its types are not among the stubs that we install."""
    return session.client("autoscaling", region_name=region, config=_CONFIG)
