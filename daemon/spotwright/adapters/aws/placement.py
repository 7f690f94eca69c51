"""Spot placement scores: how likely AWS is to fill a spot request, 1 to 10 by zone.

AWS scores a request for several types at once and gives a low score to any with fewer than three.
So the types that carry one GPU are asked about together, as a request that any of them could fill,
and share the score; GPUs with fewer than three types in a region have none. Scores are advice: when
AWS refuses them the refresh goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spotwright.adapters.aws.refusals import asking
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.hardware import InstanceType

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

_FEWEST_TYPES = 3
_NODE_COUNT = 10  # a fleet, not a single node, which nearly every zone can fill


@dataclass(frozen=True, slots=True)
class Placement:
    """Scores by (type, zone id), and why some are missing."""

    scores: Mapping[tuple[str, str], int]
    notes: tuple[str, ...] = ()


def fetch_placement(
    ec2: EC2Client,
    *,
    region: str,
    pools: Collection[tuple[str, str]],
    types: Mapping[str, InstanceType],
) -> Placement:
    """Return the scores of the (type, zone id) pools; the first refusal ends the asking."""
    scores: dict[tuple[str, str], int] = {}
    for group in _groups(pools, types):
        try:
            with asking("ec2:GetSpotPlacementScores", region=region):
                score_by_zone = _ask(ec2, region=region, group=group)
        except OutsideWorldError as refusal:
            return Placement(scores, (f"placement scores are incomplete: {refusal}",))
        scores |= {
            (name, zone): score_by_zone[zone]
            for name, zone in pools
            if name in group and zone in score_by_zone
        }
    return Placement(scores)


def _groups(
    pools: Collection[tuple[str, str]], types: Mapping[str, InstanceType]
) -> list[list[str]]:
    """Return the types that share a GPU, by GPU name, where there are enough of them."""
    by_gpu: dict[str, list[str]] = defaultdict(list)
    for name in sorted({name for name, _ in pools}):
        gpu_name = types[name].gpu_name
        if gpu_name is not None:
            by_gpu[gpu_name].append(name)
    return [by_gpu[gpu] for gpu in sorted(by_gpu) if len(by_gpu[gpu]) >= _FEWEST_TYPES]


def _ask(ec2: EC2Client, *, region: str, group: list[str]) -> dict[str, int]:
    pages = ec2.get_paginator("get_spot_placement_scores").paginate(
        InstanceTypes=group,
        TargetCapacity=_NODE_COUNT,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=[region],
    )
    answers = [score for page in pages for score in page["SpotPlacementScores"]]
    return {answer["AvailabilityZoneId"]: answer["Score"] for answer in answers}
