"""What the agent asks of a cloud's metadata server, whichever cloud it is."""

import json
import re
from datetime import UTC, datetime
from typing import Any, Protocol

from spotwright_agent.readings import HostFacts, Notice

_PLAIN = re.compile(r"[\w.:/-]{1,128}", re.ASCII)
_FIRST_UNIX_MS, _LAST_UNIX_MS = 946_684_800_000, 4_102_444_800_000  # the years 2000 and 2100


class MetadataError(Exception):
    """A metadata server did not answer as its cloud would; the text says what it did."""


class CloudSilentError(MetadataError):
    """The host is in a cloud, but no metadata server answers; it may be mended any time."""


class MetadataSource(Protocol):
    """One cloud. Only the thread that watches for notices calls it."""

    name: str  # aws, gcp or azure

    def facts(self) -> HostFacts:
        """Return what the cloud calls this host.

        Raises:
            MetadataError: this is another cloud's server, or nobody's.
        """

    def current(self, now_unix_ms: int) -> Notice | None:
        """Return what the cloud says now; what is certain goes before a hint.

        `time_unix_ms` is when the cloud said it, where it tells. A hint has no deadline yet.

        Raises:
            MetadataError: nothing is known; what was said before still holds.
        """

    def close(self) -> None:
        """End the connection; the next call opens another."""


def plain(text: str, *, about: str) -> str:
    """Return a name that a cloud gives, without the white space around it."""
    name = text.strip()
    if not _PLAIN.fullmatch(name):
        raise MetadataError(f"{about} is not a name: {name[:40]!r}")
    return name


def parsed(text: str, *, about: str) -> dict[str, Any]:
    """Return a JSON object."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise MetadataError(f"{about} is not a JSON object: {text[:40]!r}")
    return document


def iso_unix_ms(text: object) -> int | None:
    """Read a time as 2026-11-18T04:00:00Z; None where it is none.

    A notice counts even when its time cannot be read.
    """
    try:
        return unix_ms(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return None


def unix_ms(time: datetime) -> int | None:
    """Return a time as milliseconds since 1970; None where no daemon would take it."""
    found = int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    return found if _FIRST_UNIX_MS <= found <= _LAST_UNIX_MS else None
