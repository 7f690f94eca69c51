"""Tokens of the store, remembered for a few seconds so that a call costs no query."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from spotwright.domain.access import TokenRecord
from spotwright.usecases.store_ports import TokenStore

_KEEP_S = 5.0  # a revoked token opens nothing after this and the time that a query takes
_MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True)
class _LookUp:
    result: asyncio.Task[TokenRecord | None]
    start_s: float


class TokenCache:
    """Looks tokens up, each once however many calls wait for it."""

    def __init__(self, store: TokenStore, *, clock_s: Callable[[], float]) -> None:
        self._store, self._clock_s = store, clock_s
        self._look_ups: OrderedDict[str, _LookUp] = OrderedDict()

    def is_known(self, token_id: str) -> bool:
        """Tell whether the store had this token when it was last asked."""
        found = self._look_ups.get(token_id)
        return found is not None and _is_found(found.result)

    async def record(self, token_id: str) -> TokenRecord | None:
        """Return a token as the store had it a few seconds ago at most, or None.

        Raises:
            StoreUnavailableError: nobody can tell now.
        """
        found = self._look_ups.get(token_id)
        if found is None or self._clock_s() - found.start_s >= _KEEP_S:
            found = self._look_up(token_id)
        # Shielded: others may wait for the same answer when this call is cancelled.
        return await asyncio.shield(found.result)

    def _look_up(self, token_id: str) -> _LookUp:
        task = asyncio.create_task(asyncio.to_thread(self._store.token, token_id))
        task.add_done_callback(lambda _: self._forget_failed(token_id, task))
        found = self._look_ups[token_id] = _LookUp(task, self._clock_s())
        self._look_ups.move_to_end(token_id)
        if len(self._look_ups) > _MAX_COUNT:
            self._look_ups.popitem(last=False)
        return found

    def _forget_failed(self, token_id: str, task: asyncio.Task[TokenRecord | None]) -> None:
        failed = task.cancelled() or task.exception() is not None
        current = self._look_ups.get(token_id)
        if failed and current is not None and current.result is task:
            del self._look_ups[token_id]


def _is_found(result: asyncio.Task[TokenRecord | None]) -> bool:
    return (
        result.done()
        and not result.cancelled()
        and result.exception() is None
        and result.result() is not None
    )
