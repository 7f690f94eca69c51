"""Retention and history, round after round, by one replica at a time."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from spotwright.domain.errors import SpotwrightError
from spotwright.usecases.keep_house import GoOn
from spotwright.usecases.store_ports import LeaseStore

_log = logging.getLogger(__name__)

LEASE = "housekeeping"
_PERIOD_S = 30.0
_LEASE_TTL_S = 10 * _PERIOD_S  # renewed during a round: one step of it may take that long


class Housekeeping:
    """Keeps house as long as this replica has the lease for it."""

    def __init__(
        self,
        leases: LeaseStore,
        keep_house: Callable[[GoOn], object],
        *,
        replica: str,
        period_s: float = _PERIOD_S,
    ) -> None:
        self._leases, self._keep_house, self._replica = leases, keep_house, replica
        self._period_s = period_s
        self._renewed_s = 0.0  # by the monotonic clock

    async def run(self, stopping: asyncio.Event) -> None:
        """Make rounds until told to stop; then end the round, and let another replica go on."""
        while not await _is_set_within(stopping, self._period_s):
            await _logged(self._make_round, stopping)
        await _logged(self._release)

    def _make_round(self, stopping: asyncio.Event) -> None:
        def go_on() -> bool:
            return not stopping.is_set() and self._has_lease()

        if self._take_lease():
            _log.debug("kept house", extra={"done": self._keep_house(go_on)})

    def _has_lease(self) -> bool:
        return time.monotonic() < self._renewed_s + self._period_s or self._take_lease()

    def _take_lease(self) -> bool:
        now_s = time.monotonic()
        if not self._leases.acquire_lease(LEASE, self._replica, ttl_s=_LEASE_TTL_S):
            return False
        self._renewed_s = now_s
        return True

    def _release(self) -> None:
        self._leases.release_lease(LEASE, self._replica)


async def _is_set_within(event: asyncio.Event, time_s: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), time_s)
    return event.is_set()


async def _logged(work: Callable[..., None], *arguments: object) -> None:
    try:
        await asyncio.to_thread(work, *arguments)
    except SpotwrightError as error:
        _log.warning("could not keep house", extra={"problem": str(error)})
    except Exception:  # the next round may do better
        _log.exception("could not keep house")
