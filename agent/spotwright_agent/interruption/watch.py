"""Watches for notices of the cloud, in a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable

from spotwright_agent.interruption.source import CloudSilentError, MetadataError, MetadataSource
from spotwright_agent.interruption.standing import StandingNotice
from spotwright_agent.readings import HostFacts, Notice

_log = logging.getLogger(__name__)
_POLL_S = 0.5  # a notice is to be with the daemon a second after it can be seen
_MIN_PAUSE_S = 0.1  # a slow server is not asked without a pause
_FIRST_SEARCH_S, _LAST_SEARCH_S = 2.0, 300.0  # the network may come up after us
_SILENT_SEARCH_S = 30.0  # where there must be a cloud: a notice gives two minutes at most
_FACTS_AGAIN_S = 10.0
_FAILURES_TOLD = 3  # in a row; one lost answer is not a fault


class InterruptionWatch:
    """Asks the cloud twice a second and tells what is new."""

    def __init__(
        self,
        find: Callable[[], MetadataSource | None],
        *,
        on_notice: Callable[[Notice], None],
        on_problem: Callable[[str], None],
        hint_s: float,
    ) -> None:
        """Take how to find the cloud, and whom to tell.

        Args:
            find: as `find_cloud`; called again, more and more rarely, while it finds none.
            on_notice: gets each hint, interruption and withdrawal once, in order.
            on_problem: gets why nothing is known, once, and "" when the cloud answers again.
            hint_s: how long a hint holds that the cloud does not repeat.
        """
        self._find = find
        self._on_notice = on_notice
        self._on_problem = on_problem
        self._standing = StandingNotice(hint_s=hint_s)
        self._source: MetadataSource | None = None
        self._facts: HostFacts | None = None
        self.has_answered = False  # it is known whether a notice stands, and that was told
        self._searched = threading.Event()
        self._failure_count = 0
        self._facts_next_s = 0.0

    @property
    def cloud(self) -> str:
        """Which cloud was found; empty: none yet."""
        return self._source.name if self._source is not None else ""

    @property
    def facts(self) -> HostFacts:
        """What the cloud calls this host; empty until it answers."""
        return self._facts or HostFacts()

    @property
    def standing(self) -> Notice | None:
        """What holds now."""
        return self._standing.notice

    def wait_for_facts(self, timeout_s: float) -> HostFacts:
        """Return the facts once the cloud has answered, or could not at first, or time is up."""
        self._searched.wait(timeout_s)
        return self.facts

    def run(self, stopping: threading.Event) -> None:
        """Watch until told to stop."""
        self._search(stopping)
        while not stopping.is_set():
            start_s = time.monotonic()
            self._poll(start_s)
            self._searched.set()
            left_s = _POLL_S - (time.monotonic() - start_s)
            stopping.wait(max(left_s, _MIN_PAUSE_S))
        if self._source is not None:
            self._source.close()

    def _search(self, stopping: threading.Event) -> None:
        pause_s = _FIRST_SEARCH_S
        while self._source is None and not stopping.is_set():
            most_s = _LAST_SEARCH_S
            try:
                self._source = self._find()
            except CloudSilentError as error:
                self._failed(str(error))
                most_s = _SILENT_SEARCH_S
            except MetadataError as error:  # a URL that can never be asked
                _log.error("no cloud can be asked: %s", error)
                self._on_problem(str(error))
                self._searched.set()
                stopping.wait()
            else:
                self.has_answered = self._source is None  # no cloud has no notices
            if self._source is None:
                self._searched.set()
                stopping.wait(pause_s)
                pause_s = min(2 * pause_s, most_s)

    def _poll(self, now_s: float) -> None:
        assert self._source is not None
        now_unix_ms = time.time_ns() // 1_000_000
        try:
            found = self._source.current(now_unix_ms)
        except MetadataError as error:
            self._failed(str(error))
            news = self._standing.expire(now_unix_ms=now_unix_ms, now_s=now_s)
        else:
            self._answered()
            news = self._standing.update(found, now_unix_ms=now_unix_ms, now_s=now_s)
        for notice in news:
            self._tell(notice)
        self.has_answered = self.has_answered or not self._failure_count
        if self._facts is None and now_s >= self._facts_next_s:
            self._learn_facts(now_s)  # after the notice, which hurries

    def _tell(self, notice: Notice) -> None:
        _log.warning("%s: %s: %s", notice.source, notice.kind, notice.detail)
        try:
            self._on_notice(notice)
        except Exception:  # whoever is told must not end the watch
            _log.exception("a notice could not be passed on")

    def _learn_facts(self, now_s: float) -> None:
        assert self._source is not None
        try:
            self._facts = self._source.facts()
        except MetadataError as error:
            _log.info("facts of this host are not known: %s", error)
            self._facts_next_s = now_s + _FACTS_AGAIN_S

    def _failed(self, problem: str) -> None:
        self._failure_count += 1
        if self._failure_count == _FAILURES_TOLD:
            _log.warning("notices of the cloud are not known: %s", problem)
            self._on_problem(problem)

    def _answered(self) -> None:
        if self._failure_count >= _FAILURES_TOLD:
            _log.info("the cloud answers again")
            self._on_problem("")
        self._failure_count = 0
