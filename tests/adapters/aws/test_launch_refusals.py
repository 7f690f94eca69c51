"""What groups say of launches that failed, in one line and by its cause."""

import pytest

from spotwright.adapters.aws.launch_refusals import latest_refusal, read_refusal
from spotwright.domain.rental import RefusalCause
from tests.adapters.aws.scaling_activities import launch


@pytest.mark.parametrize(
    ("message", "cause", "text"),
    [
        (
            "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot "
            "capacity available that matches your request. Launching EC2 instance failed.",
            RefusalCause.CAPACITY,
            "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot "
            "capacity available that matches your request",
        ),
        (
            "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of 0.1 "
            "is lower than the minimum required Spot request fulfillment price of 0.3.",
            RefusalCause.PRICE,
            None,
        ),
        ("MaxSpotInstanceCountExceeded - Max spot instance count", RefusalCause.QUOTA, None),
        (
            "You have requested more vCPU capacity than your current vCPU limit of 0 allows",
            RefusalCause.QUOTA,
            None,
        ),
        (
            "The group\n 'sg-1' does not exist",
            RefusalCause.OTHER,
            "The group 'sg-1' does not exist",
        ),
        ("", RefusalCause.OTHER, "no reason given"),
    ],
)
def test_a_refusal_is_one_line_with_its_cause(
    message: str, cause: RefusalCause, text: str | None
) -> None:
    refusal = read_refusal(message)

    assert refusal.cause is cause
    assert "\n" not in refusal.text
    if text is not None:
        assert refusal.text == text


def test_a_failed_launch_counts_until_one_succeeds() -> None:
    failed, done = launch("Failed", "no"), launch("Successful", "")
    under_way = launch("InProgress", "")
    ended = {**launch("Successful", ""), "Description": "Terminating EC2 instance: i-1"}

    assert latest_refusal([]) is None
    assert latest_refusal([done, failed]) is None
    for activities in ([failed, done], [ended, failed], [under_way, failed]):
        refusal = latest_refusal(activities)
        assert refusal is not None
        assert refusal.text == "no"
