"""Notices of AWS: the instance metadata service, version 2, which wants a token first."""

import time

from spotwright_agent.interruption.link import MetadataLink
from spotwright_agent.interruption.source import MetadataError, iso_unix_ms, parsed, plain
from spotwright_agent.readings import HostFacts, Notice, NoticeKind

_TOKEN = "/latest/api/token"  # noqa: S105  (a path)
_TOKEN_S = 21_600  # the longest that AWS gives
_TOKEN_MARGIN_S = 300
_DATA = "/latest/meta-data/"


class AwsMetadata:
    """EC2. A spot host is told two minutes ahead, and sometimes by a hint before that."""

    name = "aws"

    def __init__(self, base_url: str = "", *, timeout_s: float = 1.0) -> None:
        self._link = MetadataLink(base_url, timeout_s=timeout_s)
        self._token = ""
        self._token_end_s = 0.0

    def facts(self) -> HostFacts:
        """Return what EC2 calls this host; the zone by its id, the same in all accounts."""
        self._link.begin()
        life_cycle = self._fact("instance-life-cycle")
        return HostFacts(
            instance_id=self._fact("instance-id"),
            instance_type=self._fact("instance-type"),
            zone=self._fact("placement/availability-zone-id"),
            market="spot" if life_cycle == "spot" else "on-demand" if life_cycle else "",
        )

    def current(self, now_unix_ms: int) -> Notice | None:
        """Return the interruption, else the recommendation to rebalance."""
        self._link.begin()
        action = self._get("spot/instance-action")
        if action is not None:
            return _interruption(action, now_unix_ms)
        rebalance = self._get("events/recommendations/rebalance")
        return None if rebalance is None else _hint(rebalance, now_unix_ms)

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    def _fact(self, name: str) -> str:
        found = self._get(name)
        return "" if found is None else plain(found, about=name)

    def _get(self, path: str) -> str | None:
        answer = self._link.ask(_DATA + path, headers=self._with_token())
        if answer.status == 401:  # the token ended early, as after a hibernation
            self._token = ""
            answer = self._link.ask(_DATA + path, headers=self._with_token())
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise MetadataError(f"{path} is answered with status {answer.status}")
        return answer.text

    def _with_token(self) -> dict[str, str]:
        now_s = time.monotonic()
        if not self._token or now_s >= self._token_end_s - _TOKEN_MARGIN_S:
            asked = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_S), "Content-Length": "0"}
            answer = self._link.ask(_TOKEN, method="PUT", headers=asked)
            self._token = _token(answer.status, answer.text)
            self._token_end_s = now_s + _TOKEN_S
        return {"X-aws-ec2-metadata-token": self._token}


def _token(status: int, text: str) -> str:
    token = text.strip()
    if status != 200:
        raise MetadataError(f"no token is given: status {status}")
    if not token.isascii() or not token.isprintable() or not 0 < len(token) <= 1024:
        raise MetadataError(f"this is no token: {token[:40]!r}")
    return token


def _interruption(text: str, now_unix_ms: int) -> Notice:
    document = parsed(text, about="spot/instance-action")
    action = document.get("action")
    if not isinstance(action, str):
        raise MetadataError(f"spot/instance-action has no action: {text[:40]!r}")
    return Notice(
        kind=NoticeKind.INTERRUPTION,
        time_unix_ms=now_unix_ms,
        deadline_unix_ms=iso_unix_ms(document.get("time")),
        source="aws",
        detail=f"spot instance-action: {plain(action, about='action')}",
    )


def _hint(text: str, now_unix_ms: int) -> Notice:
    document = parsed(text, about="rebalance")
    if "noticeTime" not in document:
        raise MetadataError(f"rebalance has no noticeTime: {text[:40]!r}")
    said_unix_ms = iso_unix_ms(document["noticeTime"])
    return Notice(
        kind=NoticeKind.HINT,
        time_unix_ms=now_unix_ms if said_unix_ms is None else said_unix_ms,
        deadline_unix_ms=None,
        source="aws",
        detail=f"rebalance recommendation of {document['noticeTime']}"[:100],
    )
