"""Runs tasks in processes of this machine."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class ProcessPool:
    """Spreads tasks over processes, each started anew."""

    def __init__(self, processes: int) -> None:
        if processes < 1:
            raise ValueError(f"processes must be at least 1, got {processes}")
        self._processes = processes

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Return what the function gives for each task, in their order."""
        if self._processes == 1 or len(tasks) < 2:
            yield from map(function, tasks)
            return
        context = get_context("spawn")  # a fork would copy the threads' locks of whoever calls
        pool = ProcessPoolExecutor(min(self._processes, len(tasks)), mp_context=context)
        try:
            yield from pool.map(function, tasks)
        finally:
            pool.shutdown(cancel_futures=True)
