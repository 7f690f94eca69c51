"""Notices of Azure: scheduled events, which name the hosts that they are about."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from spotwright_agent.interruption.link import MetadataLink
from spotwright_agent.interruption.source import MetadataError, parsed, plain, unix_ms
from spotwright_agent.readings import HostFacts, Notice, NoticeKind

_INSTANCE = "/metadata/instance?api-version=2021-02-01"
_EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
_METADATA = {"Metadata": "true"}
_GOES = ("Preempt", "Terminate")  # others freeze or restart a host, which then is there again


class _Deadline(NamedTuple):
    unix_ms: int
    by_host_clock: bool  # nobody told it: the event had started when it was seen first


class AzureMetadata:
    """Azure. A spot host is told half a minute ahead, with its neighbours in the same document."""

    name = "azure"

    def __init__(self, base_url: str = "", *, timeout_s: float = 1.0) -> None:
        self._link = MetadataLink(base_url, timeout_s=timeout_s)
        self._own_name = ""
        self._deadlines: dict[str, _Deadline] = {}  # by event; one that has started tells no time

    def facts(self) -> HostFacts:
        """Return what Azure calls this host."""
        self._link.begin()
        compute = self._compute()
        return HostFacts(
            instance_id=_fact(compute, "vmId"),
            instance_type=_fact(compute, "vmSize"),
            zone="-".join(filter(None, (_fact(compute, "location"), _fact(compute, "zone")))),
            market="spot" if _fact(compute, "priority") in ("Spot", "Low") else "on-demand",
        )

    def current(self, now_unix_ms: int) -> Notice | None:
        """Return the event that takes this host away soonest."""
        self._link.begin()
        if not self._own_name:
            self._compute()
        events = list(self._own_events(parsed(self._get(_EVENTS), about="scheduledevents")))
        self._deadlines = {
            key: deadline
            for key, event in ((str(event.get("EventId")), event) for event in events)
            if (deadline := self._deadline(key, event, now_unix_ms)) is not None
        }
        notices = [self._notice(event, now_unix_ms) for event in events]
        return min(notices, key=_soonest) if notices else None

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    def _deadline(self, key: str, event: dict[str, Any], now_unix_ms: int) -> _Deadline | None:
        told = _http_unix_ms(event.get("NotBefore"))
        if told is not None:
            return _Deadline(told, by_host_clock=False)
        if event.get("EventStatus") == "Started":
            return self._deadlines.get(key, _Deadline(now_unix_ms, by_host_clock=True))
        return None

    def _notice(self, event: dict[str, Any], now_unix_ms: int) -> Notice:
        deadline = self._deadlines.get(str(event.get("EventId")))
        return Notice(
            kind=NoticeKind.INTERRUPTION,
            time_unix_ms=now_unix_ms,
            deadline_unix_ms=None if deadline is None else deadline.unix_ms,
            deadline_by_host_clock=deadline is not None and deadline.by_host_clock,
            source="azure",
            detail=f"scheduled event: {event['EventType']}",
        )

    def _own_events(self, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
        events = document.get("Events")
        if not isinstance(events, list):
            raise MetadataError("scheduledevents has no Events")
        for event in events:
            if not isinstance(event, dict) or not isinstance(event.get("Resources"), list):
                raise MetadataError("scheduledevents has an event without Resources")
            names = {str(name).lower() for name in event["Resources"]}
            if event.get("EventType") in _GOES and self._own_name.lower() in names:
                yield event

    def _compute(self) -> dict[str, Any]:
        compute = parsed(self._get(_INSTANCE), about="instance").get("compute")
        if not isinstance(compute, dict):
            raise MetadataError("instance has no compute")
        self._own_name = plain(str(compute.get("name", "")), about="name")
        return compute

    def _get(self, path: str) -> str:
        answer = self._link.ask(path, headers=_METADATA)
        if answer.status != 200:
            raise MetadataError(f"{path} is answered with status {answer.status}")
        return answer.text


def _fact(compute: dict[str, Any], key: str) -> str:
    found = str(compute.get(key) or "")
    return plain(found, about=key) if found else ""


def _soonest(notice: Notice) -> tuple[bool, float]:
    if notice.deadline_unix_ms is None:
        return True, 0.0
    # What has started goes first: our clock, which says when, may be far from the cloud's.
    return not notice.deadline_by_host_clock, notice.deadline_unix_ms


def _http_unix_ms(text: object) -> int | None:
    try:
        return unix_ms(parsedate_to_datetime(str(text)))
    except (ValueError, OverflowError):
        return None
