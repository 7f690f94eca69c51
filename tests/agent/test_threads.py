"""Threads that come back."""

import threading
import time
from collections.abc import Callable

import pytest

from spotwright_agent.threads import Worker


def _until(holds: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


class _Fails:
    """Work that fails a few times and then goes on."""

    def __init__(self, error: Exception, *, times: int) -> None:
        self._error, self._times = error, times
        self.goes_on = threading.Event()

    def __call__(self, stopping: threading.Event) -> None:
        if self._times:
            self._times -= 1
            raise self._error
        self.goes_on.set()
        stopping.wait()


def test_work_that_fails_is_told_and_done_again() -> None:
    stopping = threading.Event()
    work = _Fails(OSError("the cable is out"), times=1)
    worker = Worker("reader", work, stopping=stopping)

    assert work.goes_on.wait(30)
    assert worker.problem == "failed: OSError: the cable is out"
    stopping.set()
    assert worker.has_ended(wait_s=30)


def test_work_that_goes_on_for_a_while_has_no_problem_any_more() -> None:
    stopping = threading.Event()
    worker = Worker("reader", _Fails(OSError("out"), times=1), stopping=stopping, steady_s=0.1)

    _until(lambda: worker.problem != "")
    _until(lambda: worker.problem == "")
    stopping.set()
    assert worker.has_ended(wait_s=30)


@pytest.mark.parametrize(
    ("error", "traces"), [(OSError("port is taken"), 0), (ZeroDivisionError("oh"), 1)]
)
def test_an_error_that_comes_again_is_one_line(
    error: Exception, traces: int, caplog: pytest.LogCaptureFixture
) -> None:
    stopping = threading.Event()
    work = _Fails(error, times=2)
    worker = Worker("reader", work, stopping=stopping)

    assert work.goes_on.wait(30)
    stopping.set()
    assert worker.has_ended(wait_s=30)
    assert caplog.text.count(f"reader failed: {type(error).__name__}") == 2
    assert caplog.text.count("Traceback") == traces


def test_a_thread_ends_with_its_work_when_all_stops() -> None:
    stopping = threading.Event()
    worker = Worker("waiter", lambda s: None, stopping=stopping)

    stopping.set()

    assert worker.has_ended(wait_s=30)
