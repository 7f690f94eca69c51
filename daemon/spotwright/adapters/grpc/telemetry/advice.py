"""Advice about checkpoints, as commands to agents."""

import logging
from collections.abc import Callable, Collection
from uuid import uuid4

from spotwright.domain.errors import NotFoundError
from spotwright.domain.telemetry import QueuedCommand
from spotwright.usecases.store_ports import TelemetryStore
from spotwright.v1 import telemetry_pb2 as v1

_log = logging.getLogger(__name__)


class AgentAdvice:
    """Queues commands; whichever replica has an agent's session hands them over."""

    def __init__(self, store: TelemetryStore, *, queued: Callable[[], None]) -> None:
        """Queue in a store; `queued` is told, in the caller's thread, that commands wait."""
        self._store, self._queued = store, queued

    def checkpoint(
        self, agent_ids: Collection[str], *, interval_s: float | None, seconds_left: float | None
    ) -> None:
        """Have agents tell training when to save its state."""
        for agent_id in agent_ids:
            command = v1.Command(
                command_id=uuid4().hex,
                checkpoint=v1.Checkpoint(interval_s=interval_s, seconds_left=seconds_left),
            )
            queued = QueuedCommand(
                command_id=command.command_id,
                agent_id=agent_id,
                document=command.SerializeToString(),
            )
            try:
                self._store.queue_command(queued)
            except NotFoundError:  # forgotten since it was seen
                _log.info("no advice for agent %s, which is gone", agent_id)
        if agent_ids:
            self._queued()
