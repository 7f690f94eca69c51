"""Why an Auto Scaling group could not start a node, read from its activities."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from spotwright.domain.rental import Refusal, RefusalCause

# In this order: a message about the vCPU limit speaks of "more vCPU capacity" too.
_CAUSES = (
    (RefusalCause.PRICE, r"SpotMaxPriceTooLow|lower than the minimum required Spot"),
    (
        RefusalCause.QUOTA,
        r"MaxSpotInstanceCountExceeded|VcpuLimitExceeded|InstanceLimitExceeded|vCPU limit|quota",
    ),
    (RefusalCause.CAPACITY, r"InsufficientInstanceCapacity|UnfulfillableCapacity|[Cc]apacity"),
)
_ENDING = re.compile(r"[. ]*Launching EC2 instance failed[. ]*$")  # says nothing new
_LONGEST = 300


def latest_refusal(activities: Iterable[Mapping[str, Any]]) -> Refusal | None:
    """Return why the last launch failed; None: it did not, or there was none.

    Args:
        activities: as DescribeScalingActivities lists them, the newest first. Those that end nodes
            tell nothing about starting them, and those under way nothing yet.
    """
    for activity in activities:
        if not activity.get("Description", "").startswith("Launching"):
            continue
        if activity["StatusCode"] == "Successful":
            return None
        if activity["StatusCode"] == "Failed":
            return read_refusal(activity.get("StatusMessage", ""))
    return None


def read_refusal(message: str) -> Refusal:
    """Read the message of a failed launch."""
    text = _ENDING.sub("", " ".join(message.split()))[:_LONGEST] or "no reason given"
    causes = (cause for cause, pattern in _CAUSES if re.search(pattern, text))
    return Refusal(cause=next(causes, RefusalCause.OTHER), text=text)
