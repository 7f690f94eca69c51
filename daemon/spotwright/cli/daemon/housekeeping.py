"""Retention and history, round after round, by one replica at a time."""

import asyncio
import logging
from collections.abc import Callable

from spotwright.domain.errors import SpotwrightError
from spotwright.usecases.store_ports import LeaseStore

_log = logging.getLogger(__name__)

_LEASE = "housekeeping"
_PERIOD_S = 30.0
_LEASE_TTL_S = 10 * _PERIOD_S  # a round may take long after a long time away


class Housekeeping:
    """Keeps house as long as this replica has the lease for it."""

    def __init__(
        self, leases: LeaseStore, keep_house: Callable[[], object], *, replica: str
    ) -> None:
        self._leases, self._keep_house, self._replica = leases, keep_house, replica

    async def run(self) -> None:
        """Make rounds until cancelled."""
        while True:
            await asyncio.sleep(_PERIOD_S)
            try:
                done = await asyncio.to_thread(self._make_round)
                if done is not None:
                    _log.debug("kept house", extra={"done": done})
            except SpotwrightError as error:
                _log.warning("could not keep house", extra={"problem": str(error)})
            except Exception:  # the next round may do better
                _log.exception("could not keep house")

    def release(self) -> None:
        """Let another replica keep house at once. Blocks."""
        self._leases.release_lease(_LEASE, self._replica)

    def _make_round(self) -> object | None:
        if not self._leases.acquire_lease(_LEASE, self._replica, ttl_s=_LEASE_TTL_S):
            return None
        return self._keep_house()
