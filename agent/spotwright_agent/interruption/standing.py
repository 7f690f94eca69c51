"""What holds of all that a cloud said, and what of it is news.

A hint and an interruption are kept apart: a hint expires, an interruption stands until the cloud
takes it back. A cloud repeats a hint by giving it another time; that the same text is still there
a day later means nothing (AWS never removes it).
"""

from collections.abc import Sequence
from dataclasses import replace

from spotwright_agent.readings import Notice, NoticeKind


class StandingNotice:
    """Compares each answer of the cloud with what was told before."""

    def __init__(self, *, hint_s: float) -> None:
        self._hint_s = hint_s
        self._told: Notice | None = None  # what holds, as it was told
        self._said: tuple[object, ...] = ()  # the same as the cloud said it
        self._hint_end_s = 0.0
        self._expired: tuple[object, ...] = ()
        self._would_have_heard = False  # a hint before this answer; an interruption hides hints

    @property
    def notice(self) -> Notice | None:
        """What holds now."""
        return self._told

    def update(self, found: Notice | None, *, now_unix_ms: int, now_s: float) -> Sequence[Notice]:
        """Return what is new after a clean answer, in order.

        Args:
            found: what the cloud says.
            now_unix_ms: the host's clock, which may jump.
            now_s: a clock that never jumps.
        """
        news = list(self.expire(now_unix_ms=now_unix_ms, now_s=now_s))
        if found is not None and found.kind is NoticeKind.HINT and self._is_old(found, now_unix_ms):
            self._expired = _identity(found)
            found = None
        if found is None or found.kind is NoticeKind.HINT:
            self._would_have_heard = True
        if found is None:
            return [*news, *self._withdraw("no longer said", now_unix_ms)]
        if self._told is not None and _identity(found) == self._said:
            return news
        if self._softens(found):  # else the daemon would keep what was certain
            news += self._withdraw("a hint is left", now_unix_ms)
        return [*news, self._tell(found, now_unix_ms, now_s)]

    def expire(self, *, now_unix_ms: int, now_s: float) -> Sequence[Notice]:
        """Return what no longer holds although nobody took it back."""
        hint = self._told is not None and self._told.kind is NoticeKind.HINT
        if not hint or now_s < self._hint_end_s:
            return []
        self._expired = self._said
        return self._withdraw("the hint has expired", now_unix_ms)

    def _is_old(self, hint: Notice, now_unix_ms: int) -> bool:
        identity = _identity(hint)
        if self._told is not None and identity == self._said:
            return False  # its end is counted by the clock that never jumps
        if identity == self._expired:
            return True
        if self._would_have_heard:
            return False  # whatever our clock shows, it was said since the answer before
        return now_unix_ms - hint.time_unix_ms >= self._hint_s * 1000  # before we were here

    def _softens(self, found: Notice) -> bool:
        told = self._told
        return (
            told is not None
            and told.kind is NoticeKind.INTERRUPTION
            and found.kind is NoticeKind.HINT
        )

    def _tell(self, found: Notice, now_unix_ms: int, now_s: float) -> Notice:
        self._said = _identity(found)
        self._told = replace(found, time_unix_ms=now_unix_ms)
        if found.kind is NoticeKind.HINT:
            self._hint_end_s = now_s + self._hint_s
            deadline_unix_ms = now_unix_ms + int(self._hint_s * 1000)
            self._told = replace(
                self._told, deadline_unix_ms=deadline_unix_ms, deadline_by_host_clock=True
            )
        return self._told

    def _withdraw(self, why: str, now_unix_ms: int) -> Sequence[Notice]:
        told, self._told, self._said = self._told, None, ()
        if told is None:
            return []
        return [
            replace(
                told,
                kind=NoticeKind.WITHDRAWN,
                time_unix_ms=now_unix_ms,
                deadline_unix_ms=None,
                deadline_by_host_clock=False,
                detail=f"{why}: {told.detail}",
            )
        ]


def _identity(notice: Notice) -> tuple[object, ...]:
    return notice.kind, notice.deadline_unix_ms, notice.detail
