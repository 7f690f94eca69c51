"""Each cloud's notices and facts, from a server that answers as theirs does."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.interruption.aws import AwsMetadata
from spotwright_agent.interruption.azure import AzureMetadata
from spotwright_agent.interruption.gcp import GcpMetadata
from spotwright_agent.interruption.source import MetadataError, MetadataSource
from spotwright_agent.readings import HostFacts, NoticeKind
from tests.fakes.metadata_server import MetadataServer, metadata_server

NOW_UNIX_MS = 1_794_975_858_451
BY_HOST, BY_CLOUD = True, False  # whose clock a deadline is counted by
SOURCES: dict[str, Callable[[str], MetadataSource]] = {
    "aws": AwsMetadata,
    "gcp": GcpMetadata,
    "azure": AzureMetadata,
}
_OPEN: list[MetadataSource] = []
every_cloud = pytest.mark.parametrize("cloud", SOURCES)


def opened(cloud: str, server: MetadataServer) -> MetadataSource:
    source = SOURCES[cloud](server.url)
    _OPEN.append(source)
    return source


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


@pytest.mark.parametrize(
    ("cloud", "facts"),
    [
        ("aws", ("i-0123456789abcdef0", "g5.12xlarge", "use1-az4", "spot")),
        ("gcp", ("4620343019386465792", "a2-highgpu-4g", "us-central1-f", "spot")),
        (
            "azure",
            (
                "02aab8a4-74ef-476e-8182-f6d2ba4166a6",
                "Standard_NC24ads_A100_v4",
                "westeurope-2",
                "spot",
            ),
        ),
    ],
)
def test_cloud_says_what_it_calls_the_host(cloud: str, facts: tuple[str, str, str, str]) -> None:
    with metadata_server(cloud) as server:
        found = opened(cloud, server).facts()

    assert (found.instance_id, found.instance_type, found.zone, found.market) == facts


@pytest.mark.parametrize(
    ("cloud", "changes"),
    [
        ("aws", {"instance-life-cycle": "on-demand"}),
        ("gcp", {"scheduling/preemptible": "FALSE"}),
        ("gcp", {"scheduling/preemptible": "FALSE", "scheduling/provisioning-model": "STANDARD"}),
        ("azure", {"priority": ""}),
        ("azure", {"priority": "Regular"}),
    ],
)
def test_host_at_full_price_is_on_demand(cloud: str, changes: dict[str, str]) -> None:
    with metadata_server(cloud) as server:
        server.facts.update(changes)

        assert opened(cloud, server).facts().market == "on-demand"


def test_gcp_spot_model_is_spot_where_preemptible_says_no() -> None:
    with metadata_server("gcp") as server:
        server.facts |= {"scheduling/preemptible": "FALSE", "scheduling/provisioning-model": "SPOT"}

        assert opened("gcp", server).facts().market == "spot"


def test_fact_that_a_cloud_does_not_have_is_empty() -> None:
    with metadata_server("aws") as server:
        server.facts.clear()

        assert opened("aws", server).facts() == HostFacts()


def test_azure_region_without_zones_is_its_own_zone() -> None:
    with metadata_server("azure") as server:
        server.facts["zone"] = ""

        assert opened("azure", server).facts().zone == "westeurope"


@every_cloud
def test_quiet_cloud_says_nothing(cloud: str) -> None:
    with metadata_server(cloud) as server:
        assert opened(cloud, server).current(NOW_UNIX_MS) is None


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_interruption_has_the_time_that_the_cloud_says(cloud: str) -> None:
    with metadata_server(cloud) as server:
        gone_unix_ms = server.interrupt(seconds=77)

        found = opened(cloud, server).current(NOW_UNIX_MS)

    assert found is not None
    assert (found.kind, found.source) == (NoticeKind.INTERRUPTION, cloud)
    assert (found.deadline_unix_ms, found.deadline_by_host_clock) == (gone_unix_ms, False)


def test_gcp_preemption_is_half_a_minute_after_it_was_first_seen() -> None:
    with metadata_server("gcp") as server:
        source = opened("gcp", server)
        server.interrupt()

        deadlines = [_deadline(source, NOW_UNIX_MS + later_ms) for later_ms in (0, 1_000, 9_000)]
        server.clear()
        assert source.current(NOW_UNIX_MS) is None
        server.interrupt()
        again = _deadline(source, NOW_UNIX_MS + 50_000)

    assert deadlines == [(NOW_UNIX_MS + 30_000, BY_HOST)] * 3
    assert again == (NOW_UNIX_MS + 80_000, BY_HOST)


def _deadline(source: MetadataSource, now_unix_ms: int) -> tuple[int | None, bool]:
    found = source.current(now_unix_ms)
    assert found is not None
    return found.deadline_unix_ms, found.deadline_by_host_clock


@pytest.mark.parametrize("action", ["terminate", "stop", "hibernate"])
def test_every_aws_action_takes_the_host_away(action: str) -> None:
    with metadata_server("aws") as server:
        server.interrupt(action=action)

        found = opened("aws", server).current(NOW_UNIX_MS)

    assert found is not None
    assert found.detail == f"spot instance-action: {action}"


def test_aws_recommendation_is_a_hint_and_an_interruption_goes_before_it() -> None:
    with metadata_server("aws") as server:
        source = opened("aws", server)
        server.rebalance(seconds_ago=60)
        hint = source.current(NOW_UNIX_MS)
        server.interrupt()
        certain = source.current(NOW_UNIX_MS)

    assert hint is not None
    assert certain is not None
    assert (hint.kind, hint.deadline_unix_ms) == (NoticeKind.HINT, None)
    assert hint.time_unix_ms == pytest.approx((time.time() - 60) * 1000, abs=30_000)
    assert certain.kind is NoticeKind.INTERRUPTION


def test_aws_interruption_with_a_time_that_cannot_be_read_still_counts() -> None:
    with metadata_server("aws") as server:
        server.say("spot/instance-action", '{"action": "terminate", "time": "soon"}')

        assert _deadline(opened("aws", server), NOW_UNIX_MS) == (None, BY_CLOUD)


def test_aws_token_is_asked_once_and_again_after_it_ended() -> None:
    with metadata_server("aws") as server:
        source = opened("aws", server)
        for _ in range(5):
            source.current(NOW_UNIX_MS)
        assert server.tokens_given == 1

        server.expire_tokens()
        server.interrupt()
        found = source.current(NOW_UNIX_MS)

        assert found is not None
        assert server.tokens_given == 2


def test_aws_token_that_is_never_good_is_asked_for_at_most_once_a_request() -> None:
    with metadata_server("aws") as server:
        server.status = 401
        with pytest.raises(MetadataError):
            opened("aws", server).current(NOW_UNIX_MS)

        assert len(server.paths) <= 4


def test_gcp_maintenance_that_ends_the_host_has_no_time() -> None:
    with metadata_server("gcp") as server:
        source = opened("gcp", server)
        server.maintain("MIGRATE_ON_HOST_MAINTENANCE")
        assert source.current(NOW_UNIX_MS) is None

        server.maintain()
        found = source.current(NOW_UNIX_MS)

    assert found is not None
    assert (found.kind, found.deadline_unix_ms) == (NoticeKind.INTERRUPTION, None)


@pytest.mark.parametrize(
    "event",
    [
        {"resources": ["trainer_4"]},
        {"resources": []},
        {"event_type": "Freeze"},
        {"event_type": "Reboot"},
    ],
)
def test_azure_events_of_others_and_those_that_leave_the_host_are_not_notices(
    event: dict[str, Any],
) -> None:
    with metadata_server("azure") as server:
        server.schedule(**event)

        assert opened("azure", server).current(NOW_UNIX_MS) is None


def test_azure_event_that_names_the_host_among_others_counts() -> None:
    with metadata_server("azure") as server:
        server.schedule(event_type="Terminate", resources=["trainer_1", "TRAINER_3"])

        assert opened("azure", server).current(NOW_UNIX_MS) is not None


def test_azure_event_that_has_started_keeps_the_time_that_it_had() -> None:
    with metadata_server("azure") as server:
        source = opened("azure", server)
        planned_unix_ms = server.interrupt(seconds=30)
        assert _deadline(source, NOW_UNIX_MS) == (planned_unix_ms, BY_CLOUD)

        server.schedule(event_status="Started", not_before="")

        assert _deadline(source, NOW_UNIX_MS) == (planned_unix_ms, BY_CLOUD)


def test_azure_event_first_seen_after_it_started_is_due_now() -> None:
    with metadata_server("azure") as server:
        source = opened("azure", server)
        server.schedule(event_status="Started", not_before="")

        told = [_deadline(source, NOW_UNIX_MS + later_ms) for later_ms in (0, 999)]

    assert told == [(NOW_UNIX_MS, BY_HOST)] * 2


def test_azure_event_that_has_started_goes_before_a_planned_one_by_every_clock() -> None:
    with metadata_server("azure") as server:
        source = opened("azure", server)
        planned_unix_ms = server.interrupt(seconds=30)
        (planned,) = json.loads(server.document("scheduledevents"))["Events"]
        started = planned | {"EventId": "other", "EventStatus": "Started", "NotBefore": ""}
        both = {"DocumentIncarnation": 3, "Events": [planned, started]}
        server.say("scheduledevents", json.dumps(both))

        told = _deadline(source, planned_unix_ms + 3_600_000)

    assert told == (planned_unix_ms + 3_600_000, BY_HOST)


@every_cloud
def test_polls_share_one_connection(cloud: str) -> None:
    with metadata_server(cloud) as server:
        source = opened(cloud, server)
        source.facts()
        for _ in range(20):
            source.current(NOW_UNIX_MS)

        assert server.connection_count == 1


@every_cloud
def test_poll_takes_less_than_a_millisecond_of_cpu(cloud: str) -> None:
    with metadata_server(cloud) as server:
        source = opened(cloud, server)
        source.current(NOW_UNIX_MS)

        costs_s = []
        for _ in range(50):
            start_s = time.thread_time()
            source.current(NOW_UNIX_MS)
            costs_s.append(time.thread_time() - start_s)

    assert sorted(costs_s)[25] < 0.001


GARBAGE = [
    b"",
    b"hello",
    b"<html>",
    b"[]",
    b"{}",
    b"null",
    b"\xff\xfe\x00",
    b"[" * 50_000,
    b"1" * 9,
]


@every_cloud
@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage[:8]))
def test_garbage_is_an_error_and_never_all_is_well(cloud: str, garbage: bytes) -> None:
    with metadata_server(cloud) as server:
        source = opened(cloud, server)
        server.interrupt()
        assert source.current(NOW_UNIX_MS) is not None

        server.garbage = garbage
        with pytest.raises(MetadataError):
            source.current(NOW_UNIX_MS)

        server.garbage = None
        assert source.current(NOW_UNIX_MS) is not None


@every_cloud
@pytest.mark.parametrize("status", [302, 400, 403, 429, 500, 503])
def test_other_statuses_are_errors_and_redirects_are_not_followed(cloud: str, status: int) -> None:
    with metadata_server(cloud) as server:
        server.status = status
        source = opened(cloud, server)

        for ask in (source.facts, lambda: source.current(NOW_UNIX_MS)):
            with pytest.raises(MetadataError):
                ask()
        assert not any("elsewhere" in path for path in server.paths)


_KEYS = st.sampled_from(
    ["action", "time", "noticeTime", "Events", "Resources", "EventType", "NotBefore", "EventId"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def azure() -> Iterator[MetadataServer]:
    with metadata_server("azure") as server:
        yield server


@pytest.fixture(scope="module")
def aws() -> Iterator[MetadataServer]:
    with metadata_server("aws") as server:
        yield server


@given(document=_JSON | st.dictionaries(_KEYS, _JSON))
def test_any_json_is_a_notice_or_nothing_or_an_error(
    aws: MetadataServer, azure: MetadataServer, document: Any
) -> None:
    text = json.dumps(document)
    aws.say("spot/instance-action", text)
    azure.say("scheduledevents", text)
    for source in (opened("aws", aws), opened("azure", azure)):
        with suppress(MetadataError):
            source.current(NOW_UNIX_MS)  # anything else that is raised fails


@given(
    not_before=st.text(max_size=40)
    | st.datetimes().map(lambda t: t.strftime("%a, %d %b %Y %X GMT"))
)
def test_any_azure_time_is_a_notice_that_a_daemon_takes(
    azure: MetadataServer, not_before: str
) -> None:
    azure.schedule(not_before=not_before)

    deadline, _ = _deadline(opened("azure", azure), NOW_UNIX_MS)

    assert deadline is None or 946_684_800_000 <= deadline <= 4_102_444_800_000
