"""Live prices from AWS: the PriceFeed that `spotwright catalog refresh` reads.

IAM actions it needs, all read-only: ec2:DescribeAvailabilityZones, ec2:DescribeInstanceTypes,
ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory, pricing:GetProducts and
servicequotas:ListServiceQuotas; ec2:GetSpotPlacementScores if it may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from boto3.session import Session

from spotwright.adapters.aws.connection import connect
from spotwright.adapters.aws.merge import merged
from spotwright.adapters.aws.refusals import asking
from spotwright.adapters.aws.region_market import RegionMarket, fetch_region_market
from spotwright.domain.catalog import Snapshot
from spotwright.domain.errors import BadInputError

_MOST_THREADS = 8


class AwsPriceFeed:
    """Reads instance types, prices, quotas and placement scores of an AWS account."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        warn: Callable[[str], None],
        open_session: Callable[[], Session] = Session,
    ) -> None:
        """Keep how to reach AWS; nothing is read before `fetch`.

        Args:
            clock: tells the time of the observation, with a time zone.
            warn: is given one line for each thing that was left out.
            open_session: finds the credentials; by default as the AWS tools do.
        """
        self._clock, self._warn, self._open_session = clock, warn, open_session

    def fetch(self, last: Snapshot, *, regions: Sequence[str]) -> Snapshot:
        """Return what AWS says now of the regions; the rest is carried over from `last`.

        Raises:
            OutsideWorldError: AWS refused, did not answer or listed no prices for a region.
        """
        wanted = tuple(dict.fromkeys(regions))
        if not wanted:
            raise BadInputError("name at least one AWS region to refresh, such as us-east-1")
        now = self._clock()
        markets = self._ask(wanted, last=last, now=now)
        for note in dict.fromkeys(note for market in markets for note in market.notes):
            self._warn(note)
        return merged(last, markets, now=now)

    def _ask(
        self, regions: tuple[str, ...], *, last: Snapshot, now: datetime
    ) -> list[RegionMarket]:
        with asking("credentials and endpoints", region=", ".join(regions)):
            clients = connect(self._open_session(), regions=regions)
        with ThreadPoolExecutor(max_workers=min(len(regions), _MOST_THREADS)) as pool:
            return list(pool.map(lambda c: fetch_region_market(c, last=last, now=now), clients))
