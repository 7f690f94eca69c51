"""Activities of an Auto Scaling group, as DescribeScalingActivities lists them."""

from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 11, 18, 9, 0, tzinfo=UTC)


def launch(status: str, message: str) -> dict[str, Any]:
    return {
        "ActivityId": "a",
        "AutoScalingGroupName": "group",
        "Cause": "a node was missing",
        "StartTime": NOW,
        "Description": "Launching a new EC2 instance",
        "StatusCode": status,
        "StatusMessage": message,
    }
