"""What holds of all that a cloud said, against a plain model and case by case."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.interruption.standing import StandingNotice
from spotwright_agent.readings import Notice, NoticeKind

NOW_UNIX_MS = 1_794_975_858_000
HINT_S = 10.0
HINT, INTERRUPTION, WITHDRAWN = NoticeKind.HINT, NoticeKind.INTERRUPTION, NoticeKind.WITHDRAWN


def said(kind: NoticeKind, *, detail: str = "x", deadline: int | None = None) -> Notice:
    return Notice(
        kind=kind, time_unix_ms=NOW_UNIX_MS, deadline_unix_ms=deadline, source="aws", detail=detail
    )


class Watched:
    """Passes answers on, a second apart."""

    def __init__(self) -> None:
        self.standing = StandingNotice(hint_s=HINT_S)
        self.now_s = 0.0
        self.clock_error_s = 0.0

    @property
    def now_unix_ms(self) -> int:
        return NOW_UNIX_MS + int((self.now_s + self.clock_error_s) * 1000)

    def hear(self, found: Notice | None, *, after_s: float = 1.0) -> Sequence[Notice]:
        self.now_s += after_s
        return self.standing.update(found, now_unix_ms=self.now_unix_ms, now_s=self.now_s)

    def kinds(self, found: Notice | None, *, after_s: float = 1.0) -> list[NoticeKind]:
        return [notice.kind for notice in self.hear(found, after_s=after_s)]


def test_same_interruption_is_told_once_and_again_with_another_deadline() -> None:
    watched, first = Watched(), said(INTERRUPTION, deadline=NOW_UNIX_MS + 120_000)

    assert watched.kinds(first) == [INTERRUPTION]
    assert watched.kinds(first) == []
    later = replace(first, deadline_unix_ms=NOW_UNIX_MS + 60_000)
    assert watched.hear(later)[0].deadline_unix_ms == NOW_UNIX_MS + 60_000


def test_notice_says_when_it_was_seen() -> None:
    watched = Watched()

    (told,) = watched.hear(said(INTERRUPTION), after_s=7)

    assert told.time_unix_ms == NOW_UNIX_MS + 7_000


def test_interruption_stands_past_its_deadline_until_the_cloud_takes_it_back() -> None:
    watched, certain = Watched(), said(INTERRUPTION, deadline=NOW_UNIX_MS + 1000)
    watched.hear(certain)

    assert watched.kinds(certain, after_s=86_400) == []
    assert watched.kinds(None) == [WITHDRAWN]
    assert watched.kinds(None) == []


def test_hint_has_its_end_as_deadline_and_expires_though_it_is_still_there() -> None:
    watched = Watched()

    (told,) = watched.hear(said(HINT))

    assert told.deadline_unix_ms == told.time_unix_ms + HINT_S * 1000
    assert watched.kinds(said(HINT), after_s=HINT_S - 0.1) == []
    assert watched.kinds(said(HINT), after_s=0.1) == [WITHDRAWN]
    assert watched.kinds(said(HINT), after_s=99) == []


def test_hint_that_the_cloud_repeats_with_another_time_holds_on() -> None:
    watched = Watched()
    watched.hear(said(HINT, detail="of 4:00"))

    repeated = replace(said(HINT, detail="of 4:01"), time_unix_ms=NOW_UNIX_MS + 9_000)
    assert watched.kinds(repeated, after_s=9) == [HINT]
    assert watched.kinds(repeated, after_s=9) == []


def test_hint_expires_while_the_cloud_does_not_answer() -> None:
    watched = Watched()
    watched.hear(said(HINT))

    news = watched.standing.expire(now_unix_ms=watched.now_unix_ms, now_s=watched.now_s + HINT_S)

    assert [notice.kind for notice in news] == [WITHDRAWN]


def test_interruption_does_not_expire() -> None:
    watched = Watched()
    watched.hear(said(INTERRUPTION))

    assert not watched.standing.expire(now_unix_ms=watched.now_unix_ms, now_s=10**6)


def test_hint_from_before_the_agent_started_is_not_news() -> None:
    old = replace(said(HINT), time_unix_ms=NOW_UNIX_MS - 3_600_000)

    assert Watched().kinds(old) == []


def test_hint_from_before_the_agent_started_stays_old_news() -> None:
    watched, old = Watched(), replace(said(HINT), time_unix_ms=NOW_UNIX_MS - 3_600_000)
    watched.hear(old)

    assert watched.kinds(old) == []
    assert watched.kinds(None) == []
    assert watched.kinds(old) == []


def test_hint_that_an_interruption_hid_is_as_old_as_it_says() -> None:
    watched, old = Watched(), replace(said(HINT), time_unix_ms=NOW_UNIX_MS - 3_600_000)

    assert watched.kinds(said(INTERRUPTION)) == [INTERRUPTION]
    assert watched.kinds(old) == [WITHDRAWN]


def test_hint_that_comes_while_we_watch_is_news_by_every_clock() -> None:
    for error_s in (3_600.0, -3_600.0):
        watched = Watched()
        watched.clock_error_s = error_s
        watched.hear(None)

        assert watched.kinds(said(HINT)) == [HINT]


def test_deadline_of_a_hint_is_by_our_clock_and_a_withdrawal_has_none() -> None:
    watched = Watched()

    (hint,) = watched.hear(said(HINT))
    (withdrawn,) = watched.hear(None)

    assert hint.deadline_by_host_clock
    assert (withdrawn.deadline_unix_ms, withdrawn.deadline_by_host_clock) == (None, False)


def test_interruption_takes_the_place_of_a_hint_and_a_hint_that_is_left_follows_a_withdrawal() -> (
    None
):
    watched = Watched()

    assert watched.kinds(said(HINT)) == [HINT]
    assert watched.kinds(said(INTERRUPTION)) == [INTERRUPTION]
    assert watched.kinds(said(HINT)) == [WITHDRAWN, HINT]


def test_jump_of_the_clock_neither_ends_a_hint_nor_prolongs_it() -> None:
    for jump_s in (86_400.0, -86_400.0):
        watched = Watched()
        watched.hear(said(HINT))
        watched.clock_error_s = jump_s

        assert watched.kinds(said(HINT), after_s=HINT_S - 1) == []
        assert watched.kinds(said(HINT), after_s=1) == [WITHDRAWN]


_ANSWERS = st.one_of(
    st.none(),
    st.sampled_from([said(HINT, detail="a"), said(HINT, detail="b")]),
    st.sampled_from([said(INTERRUPTION, deadline=d) for d in (None, NOW_UNIX_MS, NOW_UNIX_MS + 9)]),
)


@given(st.lists(st.tuples(_ANSWERS, st.sampled_from([0.5, 3.0, 11.0])), max_size=30))
def test_whoever_follows_the_news_knows_what_the_cloud_says(
    answers: list[tuple[Notice | None, float]],
) -> None:
    watched, known = Watched(), None
    for found, after_s in answers:
        for news in watched.hear(found, after_s=after_s):
            if news.kind is WITHDRAWN:
                assert known is not None  # nothing is taken back twice
                known = None
            else:
                assert known is None or (known.kind, news.kind) != (INTERRUPTION, HINT)
                known = news

        if found is None:
            assert known is None
        elif found.kind is INTERRUPTION:
            assert known is not None
            assert (known.kind, known.deadline_unix_ms) == (INTERRUPTION, found.deadline_unix_ms)
        else:
            assert known is None or (known.kind, known.detail) == (HINT, found.detail)
        if known is not None and known.kind is HINT:
            assert known.deadline_unix_ms is not None
            assert watched.now_unix_ms < known.deadline_unix_ms
        assert known == watched.standing.notice
