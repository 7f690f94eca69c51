"""Work that several callers ask for at the same time, done once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedWork(Generic[T]):
    """Work under way, by name. It ends when the last of those who wait for it has left."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[T]] = {}
        self._waiting: dict[str, int] = {}

    async def run(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return what the work of this name gives; `work` starts it where nobody has."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._done(name, work))
        task = self._tasks[name]
        self._waiting[name] = self._waiting.get(name, 0) + 1
        try:
            return await asyncio.shield(task)
        finally:
            self._leave(name, task)

    def _leave(self, name: str, task: "asyncio.Task[T]") -> None:
        if task.done():
            return
        self._waiting[name] -= 1
        if not self._waiting[name]:
            self._forget(name)
            task.cancel()

    async def _done(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            if self._tasks.get(name) is asyncio.current_task():
                self._forget(name)

    def _forget(self, name: str) -> None:
        del self._tasks[name], self._waiting[name]
