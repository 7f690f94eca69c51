"""Notices of Google Cloud: flags of the metadata server that turn over."""

import re

from spotwright_agent.interruption.link import MetadataLink
from spotwright_agent.interruption.source import MetadataError, plain
from spotwright_agent.readings import HostFacts, Notice, NoticeKind

_INSTANCE = "/computeMetadata/v1/instance/"
_PREEMPTED = re.compile("TRUE|FALSE")
_MAINTENANCE = re.compile("[A-Z_]{1,100}")
_FLAVOR = {"Metadata-Flavor": "Google"}
_PREEMPTION_MS = 30_000  # best effort; Google promises no more


class GcpMetadata:
    """Compute Engine. A spot host is told half a minute ahead, without a time."""

    name = "gcp"

    def __init__(self, base_url: str = "", *, timeout_s: float = 1.0) -> None:
        self._link = MetadataLink(base_url, timeout_s=timeout_s)
        self._preempted_unix_ms: int | None = None  # when it was seen first

    def facts(self) -> HostFacts:
        """Return what Compute Engine calls this host."""
        self._link.begin()
        return HostFacts(
            instance_id=self._fact("id"),
            instance_type=self._fact("machine-type").rpartition("/")[2],
            zone=self._fact("zone").rpartition("/")[2],
            market=self._market(),
        )

    def current(self, now_unix_ms: int) -> Notice | None:
        """Return the preemption, else the maintenance that ends this host."""
        self._link.begin()
        if self._flag("preempted", _PREEMPTED) == "TRUE":
            return self._preemption(now_unix_ms)
        self._preempted_unix_ms = None
        # A host with GPUs cannot move. It is told an hour ahead, others a minute; no time is told.
        if self._flag("maintenance-event", _MAINTENANCE) == "TERMINATE_ON_HOST_MAINTENANCE":
            return _interruption("host maintenance ends this host", now_unix_ms, None)
        return None

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    def _preemption(self, now_unix_ms: int) -> Notice:
        if self._preempted_unix_ms is None:
            self._preempted_unix_ms = now_unix_ms
        deadline_unix_ms = self._preempted_unix_ms + _PREEMPTION_MS
        return _interruption("preempted", now_unix_ms, deadline_unix_ms)

    def _market(self) -> str:
        if self._get("scheduling/preemptible") == "TRUE":
            return "spot"
        return "spot" if self._get("scheduling/provisioning-model") == "SPOT" else "on-demand"

    def _fact(self, name: str) -> str:
        found = self._get(name)
        return "" if found is None else plain(found, about=name)

    def _flag(self, name: str, values: re.Pattern[str]) -> str:
        found = self._get(name) or ""
        if not values.fullmatch(found):  # not to be taken for "all is well"
            raise MetadataError(f"{name} is {found[:40]!r}")
        return found

    def _get(self, path: str) -> str | None:
        answer = self._link.ask(_INSTANCE + path, headers=_FLAVOR)
        if answer.headers.get("Metadata-Flavor") != "Google":
            raise MetadataError("the answer is not of Google's metadata server")
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise MetadataError(f"{path} is answered with status {answer.status}")
        return answer.text.strip()


def _interruption(detail: str, now_unix_ms: int, deadline_unix_ms: int | None) -> Notice:
    return Notice(
        kind=NoticeKind.INTERRUPTION,
        time_unix_ms=now_unix_ms,
        deadline_unix_ms=deadline_unix_ms,
        deadline_by_host_clock=deadline_unix_ms is not None,
        source="gcp",
        detail=detail,
    )
