"""Threads that come back."""

import threading

from spotwright_agent.threads import start_thread


def test_work_that_fails_is_told_and_done_again() -> None:
    stopping, again = threading.Event(), threading.Event()
    problems: list[str] = []
    tries: list[int] = []

    def work(stopping: threading.Event) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the cable is out")
        again.set()
        stopping.wait()

    thread = start_thread("reader", work, stopping=stopping, on_problem=problems.append)

    assert again.wait(30)
    stopping.set()
    thread.join(30)
    assert not thread.is_alive()
    assert problems == ["failed: OSError: the cable is out"]


def test_a_thread_ends_with_its_work_when_all_stops() -> None:
    stopping = threading.Event()
    thread = start_thread("waiter", lambda s: None, stopping=stopping, on_problem=print)

    stopping.set()
    thread.join(30)

    assert not thread.is_alive()
