"""The whole feed on recorded replies: what it keeps, what it replaces, what it reports."""

from dataclasses import replace
from typing import Any

import pytest

from spotwright.adapters.aws.feed import AwsPriceFeed
from spotwright.domain.catalog import QuotaKey, Snapshot, ZonePrice
from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.domain.offer import Market
from spotwright.usecases.refresh_catalog import refresh_catalog
from tests.adapters.aws.last_snapshot import LAST, LAST_TIME, NOW, P2_TIME
from tests.fakes.memory_snapshot_store import MemorySnapshotStore
from tests.fakes.recorded_aws import RecordedAws, Refusal, all_replies


class Refresh:
    """One refresh of us-east-1 from the recorded replies, some of them changed."""

    def __init__(self, last: Snapshot = LAST, /, **changed: dict[str, Any] | Refusal) -> None:
        self.aws = RecordedAws({**all_replies(), **changed})
        self.notes: list[str] = []
        self.store = MemorySnapshotStore(last)
        feed = AwsPriceFeed(
            clock=lambda: NOW, warn=self.notes.append, open_session=self.aws.open_session
        )
        self.report = refresh_catalog(feed, self.store, regions=["us-east-1"])
        self.fresh = self.store.snapshot


def refused(**changed: dict[str, Any] | Refusal) -> str:
    with pytest.raises(OutsideWorldError) as caught:
        Refresh(**changed)
    return str(caught.value)


def test_a_refreshed_region_has_the_prices_of_now() -> None:
    refresh = Refresh()

    assert refresh.fresh.price_times["us-east-1"] == NOW
    assert refresh.report.previous_time == LAST_TIME
    assert [p for p in refresh.fresh.prices if p.region == "us-east-1"] == [
        ZonePrice("g5.12xlarge", "us-east-1", "use1-az1", 5.672, 2.2184),
        ZonePrice("g5.2xlarge", "us-east-1", "use1-az1", 1.212, 0.5331),
        ZonePrice("g5.xlarge", "us-east-1", "use1-az1", 1.006, 0.4523),
        ZonePrice("g5.xlarge", "us-east-1", "use1-az6", 1.006, 0.4099),
        ZonePrice("g6f.large", "us-east-1", "use1-az1", 0.202, None),
        ZonePrice("m5.xlarge", "us-east-1", "use1-az1", 0.192, None),
        ZonePrice("m5.xlarge", "us-east-1", "use1-az6", 0.192, 0.0715),
        ZonePrice("p2.xlarge", "us-east-1", "use1-az1", 0.9, 0.27),  # retired: carried over
        ZonePrice("p4d.24xlarge", "us-east-1", "use1-az6", 21.957642, None),
    ]


def test_what_aws_was_not_asked_or_cannot_tell_is_carried_over() -> None:
    fresh = Refresh().fresh

    assert ZonePrice("g5.xlarge", "us-west-2", "usw2-az1", 1.006, 0.37) in fresh.prices
    assert fresh.vcpu_quotas[QuotaKey("us-west-2", "g-vt", Market.SPOT)] == 8
    assert fresh.placement_scores["g5.xlarge", "usw2-az1"] == 7
    assert fresh.instance_types["p2.xlarge"] == LAST.instance_types["p2.xlarge"]
    assert fresh.interruption_fraction == LAST.interruption_fraction
    assert fresh.gpus == LAST.gpus


def test_a_refresh_of_one_region_makes_no_other_price_look_fresh() -> None:
    refresh = Refresh()

    assert refresh.fresh.price_times == {"us-east-1": NOW, "us-west-2": LAST_TIME}
    assert refresh.fresh.price_time("p2.xlarge", region="us-east-1") == P2_TIME
    assert refresh.report.catalog_time == LAST_TIME


def test_a_retired_type_that_is_sold_again_has_only_prices_of_now() -> None:
    g5 = replace(LAST.instance_types["g5.xlarge"], retired=True)
    last = replace(
        LAST,
        instance_types={**LAST.instance_types, "g5.xlarge": g5},
        retired_price_times={"g5.xlarge": P2_TIME, "p2.xlarge": P2_TIME},
    )

    fresh = Refresh(last).fresh

    assert {p.zone for p in fresh.prices if p.instance_type == "g5.xlarge"} == {
        "use1-az1",
        "use1-az6",
    }
    assert fresh.retired_price_times == {"p2.xlarge": P2_TIME}


def test_a_region_never_priced_before_replaces_nothing_older() -> None:
    west = tuple(price for price in LAST.prices if price.region == "us-west-2")
    last = replace(LAST, prices=west, price_times={"us-west-2": LAST_TIME})

    refresh = Refresh(last)

    assert refresh.report.previous_time is None
    assert refresh.fresh.price_times == {"us-east-1": NOW, "us-west-2": LAST_TIME}


def test_sources_stay_true_after_further_refreshes() -> None:
    once = Refresh().fresh
    twice = Refresh(once).fresh

    assert once.sources == {
        "prices": "a list of August",
        "refreshed_prices": f"AWS APIs, where price_times are after {LAST_TIME.isoformat()}",
    }
    assert twice.sources == once.sources


def test_quotas_of_the_account_replace_the_old_ones() -> None:
    quotas = Refresh().fresh.vcpu_quotas

    assert quotas[QuotaKey("us-east-1", "g-vt", Market.SPOT)] == 128
    assert quotas[QuotaKey("us-east-1", "standard", Market.ON_DEMAND)] == 1152


def test_types_that_share_a_gpu_are_scored_together_and_pairs_are_not() -> None:
    refresh = Refresh()

    asked = [params for name, params in refresh.aws.asked if name == "GetSpotPlacementScores"]
    assert [params["InstanceTypes"] for params in asked] == [
        ["g5.12xlarge", "g5.2xlarge", "g5.xlarge"]
    ]
    assert {key: s for key, s in refresh.fresh.placement_scores.items() if "use1" in key[1]} == {
        ("g5.12xlarge", "use1-az1"): 9,
        ("g5.2xlarge", "use1-az1"): 9,
        ("g5.xlarge", "use1-az1"): 9,
        ("g5.xlarge", "use1-az6"): 3,
    }


def test_nothing_is_left_out_without_a_note() -> None:
    notes = "\n".join(Refresh().notes)

    assert "left out dl1.24xlarge" in notes
    assert "left out zone use1-atl2-az1" in notes
    assert "left out spot prices in us-east-1-bos-1a" in notes
    assert "left out in us-east-1, offered without a price: p4de.24xlarge" in notes
    assert "no spot quota of class p (L-7212CCBC) is listed in us-east-1" in notes


def test_without_leave_for_placement_scores_prices_are_still_refreshed() -> None:
    refresh = Refresh(GetSpotPlacementScores=Refusal("UnauthorizedOperation", "not you"))

    assert refresh.store.save_count == 1
    assert ("g5.xlarge", "use1-az6") not in refresh.fresh.placement_scores
    (note,) = [n for n in refresh.notes if n.startswith("placement scores are incomplete")]
    assert "allow the IAM action ec2:GetSpotPlacementScores" in note


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("DescribeAvailabilityZones", "ec2:DescribeAvailabilityZones"),
        ("DescribeInstanceTypes", "ec2:DescribeInstanceTypes"),
        ("DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypeOfferings"),
        ("DescribeSpotPriceHistory", "ec2:DescribeSpotPriceHistory"),
        ("GetProducts", "pricing:GetProducts"),
        ("ListServiceQuotas", "servicequotas:ListServiceQuotas"),
    ],
)
def test_a_required_call_that_is_denied_names_the_iam_action(operation: str, action: str) -> None:
    message = refused(**{operation: Refusal("AccessDeniedException", "User is not authorized")})

    assert f"asked AWS for {action} in us-east-1" in message
    assert "AccessDeniedException: User is not authorized" in message
    assert f"allow the IAM action {action}" in message


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("ExpiredToken", "sign in again"),
        ("AuthFailure", "has this region enabled"),
        ("ThrottlingException", "wait a minute"),
        ("InternalError", "try again later"),
    ],
)
def test_each_refusal_says_what_to_do(code: str, way_out: str) -> None:
    assert way_out in refused(DescribeAvailabilityZones=Refusal(code))


def test_a_refusal_that_quotes_the_signed_request_is_cut_short() -> None:
    text = (
        "Key AKIAIOSFODNN7EXAMPLE is wrong.\n\nThe string to sign was x-amz-security-token:SECRET"
    )

    message = refused(GetProducts=Refusal("SignatureDoesNotMatch", text))

    assert "SECRET" not in message
    assert "AKIA" not in message


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"DescribeSpotPriceHistory": {"SpotPriceHistory": []}}, "spot prices"),
        ({"GetProducts": {"PriceList": []}}, "on-demand prices"),
        ({"DescribeInstanceTypeOfferings": {"InstanceTypeOfferings": []}}, "instance types"),
    ],
)
def test_an_empty_answer_is_not_taken_for_an_empty_market(
    changed: dict[str, dict[str, Any]], what: str
) -> None:
    assert f"AWS answered but listed no {what} for us-east-1" in refused(**changed)


@pytest.mark.parametrize(
    "entry", ["<html>", "[]", "{}", '{"product": {"attributes": {"instanceType": "g5.xlarge"}}}']
)
def test_a_price_list_that_is_garbage_is_refused(entry: str) -> None:
    message = refused(GetProducts={"PriceList": [entry]})

    assert "pricing:GetProducts" in message
    assert "not in the published shape" in message


def test_the_spot_history_is_asked_from_the_given_clock_on() -> None:
    asked = dict(Refresh().aws.asked)

    assert asked["DescribeSpotPriceHistory"]["StartTime"] == NOW
    assert asked["DescribeInstanceTypes"]["Filters"] == [
        {"Name": "instance-type", "Values": ["g*", "p*", "m5.*"]}
    ]


def test_no_region_is_a_mistake_of_the_caller() -> None:
    feed = AwsPriceFeed(clock=lambda: NOW, warn=print)

    with pytest.raises(BadInputError, match="at least one AWS region"):
        feed.fetch(LAST, regions=[])
