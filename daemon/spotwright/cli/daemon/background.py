"""What goes on beside the calls, and how it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

_log = logging.getLogger(__name__)

_HEALTH_PERIOD_S = 1.0
_BUSY_PERIOD_S = 5.0
Work = Coroutine[Any, Any, None]


@asynccontextmanager
async def background(
    stopping: asyncio.Event, *, orderly: Iterable[Work], endless: Iterable[Work]
) -> AsyncIterator[None]:
    """Run work until the block ends; what fails is a fault of ours, logged, and stops nothing else.

    Args:
        stopping: set when the block ends, or earlier.
        orderly: ends by itself once `stopping` is set, and is waited for.
        endless: is cancelled after that.
    """
    waited_for = [asyncio.create_task(work) for work in orderly]
    cancelled = [asyncio.create_task(work) for work in endless]
    for task in (*waited_for, *cancelled):
        task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        stopping.set()
        await asyncio.gather(*waited_for, return_exceptions=True)
        for task in cancelled:
            task.cancel()
        await asyncio.gather(*cancelled, return_exceptions=True)


async def tell_health(
    is_failing: Callable[[], bool],
    tell: Callable[[bool], Awaitable[None]],
    *,
    stopping: asyncio.Event,
    period_s: float = _HEALTH_PERIOD_S,
) -> None:
    """Tell whether something serves, each time that this changes; a daemon that stops does not."""
    failing = False
    while True:
        await asyncio.sleep(period_s)
        if stopping.is_set():
            return
        if is_failing() != failing:
            failing = not failing
            await tell(not failing)


async def tell_busy(
    is_busy: Callable[[], bool],
    tell: Callable[[], None],
    *,
    stopping: asyncio.Event,
    period_s: float = _BUSY_PERIOD_S,
) -> None:
    """Tell again and again, once a daemon stops, that something has yet to end."""
    await stopping.wait()
    while True:
        if is_busy():
            tell()
        await asyncio.sleep(period_s)


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("a background task failed", exc_info=task.exception())
