"""What a cloud says, as it comes to the daemon through an agent whose clock may be wrong."""

from collections.abc import Callable
from datetime import datetime, timedelta

from spotwright.adapters.grpc.telemetry.batch_reader import Sender, read_batch
from spotwright.domain.telemetry import AgentNotice
from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.interruption.aws import AwsMetadata
from spotwright_agent.interruption.azure import AzureMetadata
from spotwright_agent.interruption.gcp import GcpMetadata
from spotwright_agent.interruption.source import MetadataSource
from spotwright_agent.interruption.standing import StandingNotice
from spotwright_agent.report.messages import notice_to_proto
from tests.fakes.metadata_server import MetadataServer, metadata_server

SOURCES: dict[str, Callable[[str], MetadataSource]] = {
    "aws": AwsMetadata,
    "gcp": GcpMetadata,
    "azure": AzureMetadata,
}
HINT_S = 600.0


def heard(
    cloud: str,
    say: Callable[[MetadataServer], object],
    *,
    now: datetime,
    off_s: float = 0.0,
    was_quiet: bool = True,
) -> AgentNotice | None:
    """Return what the daemon knows of what a cloud says now.

    Args:
        cloud: aws, gcp or azure.
        say: has the cloud say it.
        now: the true time.
        off_s: how far ahead the host's clock is.
        was_quiet: the agent has asked before, when nothing was said.
    """
    host_unix_ms = _unix_ms(now + timedelta(seconds=off_s))
    standing = StandingNotice(hint_s=HINT_S)
    with metadata_server(cloud) as server:
        source = SOURCES[cloud](server.url)
        if was_quiet:
            found = source.current(host_unix_ms - 500)
            assert not standing.update(found, now_unix_ms=host_unix_ms - 500, now_s=0.0)
        say(server)
        found = source.current(host_unix_ms)
        source.close()
    news = standing.update(found, now_unix_ms=host_unix_ms, now_s=0.5)
    if not news:
        return None
    batch = v1.Batch(
        sequence=1, send_time_unix_ms=host_unix_ms, notices=[notice_to_proto(news[-1])]
    )
    sender = Sender("agent-0", "boot", "job-0")
    return read_batch(batch, sender=sender, receive_unix_ms=_unix_ms(now)).notices[0]


def _unix_ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
