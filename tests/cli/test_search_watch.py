"""How a search is looked on and ended early."""

import os
import signal
from collections.abc import Iterator

import pytest

from spotwright.cli.search_watch import SearchWatch, progress_text
from spotwright.domain.units import format_duration, format_usd
from spotwright.planner.problem import SearchProgress


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def _usual_interrupt() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _watch(clock: Clock, time_limit_s: float = 2.0) -> SearchWatch:
    return SearchWatch(time_limit_s=time_limit_s, figure=format_usd, clock=clock)


def _progress(best: float | None, bound: float = 40.1) -> SearchProgress:
    return SearchProgress(best=best, lower_bound=bound, box_count=1312)


def test_a_search_ends_at_its_time_limit() -> None:
    clock = Clock()
    with _watch(clock) as looking:
        clock.now_s += 1.9
        assert not looking.watch.stopped()
        clock.now_s += 0.1
        assert looking.watch.stopped()


def test_the_first_interrupt_ends_the_search_and_the_second_the_program() -> None:
    with _watch(Clock()) as looking:
        assert not looking.watch.stopped()
        os.kill(os.getpid(), signal.SIGINT)
        assert looking.watch.stopped()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_that_is_not_taken_does_what_it_always_does() -> None:
    clock = Clock()
    looking = SearchWatch(time_limit_s=2.0, figure=format_usd, clock=clock, takes_ctrl_c=False)
    with looking, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)

    assert not looking.ended_early


@pytest.mark.parametrize("usual", [signal.default_int_handler, signal.SIG_DFL, signal.SIG_IGN])
def test_interrupts_mean_afterwards_what_they_meant_before(usual: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, usual)

    with pytest.raises(ValueError, match="broken"), _watch(Clock()):
        raise ValueError("broken")

    assert signal.getsignal(signal.SIGINT) is usual


def test_a_program_that_runs_behind_does_not_begin_to_listen() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    with _watch(Clock()) as looking:
        os.kill(os.getpid(), signal.SIGINT)
        assert not looking.watch.stopped()


def test_nothing_is_shown_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with _watch(Clock()) as looking:
        looking.watch.report(_progress(41.2))

    assert capsys.readouterr() == ("", "")


def test_progress_tells_best_bound_gap_boxes_and_time() -> None:
    found = progress_text(_progress(41.2), 1.4, format_usd)
    fastest = progress_text(_progress(7200.0, 7000.0), 75, format_duration)

    assert found == "searching: best $41.20, bound $40.10, gap 2.7 %, 1,312 boxes, 1.4 s"
    assert fastest == "searching: best 2.0 h, bound 116.7 min, gap 2.8 %, 1,312 boxes, 75 s"


@pytest.mark.parametrize("bound", [0.0, float("inf")])
def test_progress_leaves_out_what_is_not_known_yet(bound: float) -> None:
    told = progress_text(_progress(None, bound), 0.5, format_usd)

    assert told == "searching: no fleet yet, 1,312 boxes, 500 ms"
