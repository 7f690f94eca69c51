"""When a host goes, as the daemon has it, whatever the host's clock shows."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.fakes.metadata_server import MetadataServer
from tests.usecases.cloud_notice import HINT_S, heard

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
an_hour_off = pytest.mark.parametrize("off_s", [0.0, 3600.0, -3600.0])


def _interrupted(server: MetadataServer) -> None:
    server.interrupt(now_s=NOW.timestamp(), seconds=77)


def _started(server: MetadataServer) -> None:
    server.schedule(event_status="Started", not_before="")


def _recommended(server: MetadataServer) -> None:
    server.rebalance(now_s=NOW.timestamp(), seconds_ago=20)


@an_hour_off
@pytest.mark.parametrize(
    ("cloud", "say", "left_s"),
    [
        ("aws", _interrupted, 77),
        ("azure", _interrupted, 77),
        ("azure", _started, 0),
        ("gcp", _interrupted, 30),
        ("aws", _recommended, HINT_S),
    ],
    ids=["aws", "azure", "azure-started", "gcp", "aws-hint"],
)
def test_the_deadline_is_right_though_the_clock_of_the_host_is_not(
    cloud: str, say: Callable[[MetadataServer], None], left_s: float, off_s: float
) -> None:
    told = heard(cloud, say, now=NOW, off_s=off_s)

    assert told is not None
    assert (told.time, told.deadline) == (NOW, NOW + timedelta(seconds=left_s))


def test_a_hint_that_was_there_at_first_is_as_old_as_the_clock_of_the_host_says() -> None:
    assert heard("aws", _recommended, now=NOW, was_quiet=False) is not None
    assert heard("aws", _recommended, now=NOW, was_quiet=False, off_s=3600.0) is None
