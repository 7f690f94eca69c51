"""Commands for agents in the database, until they are taken."""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, insert, select

from spotwright.adapters.store.requests import claim_request
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import agents, commands
from spotwright.domain.errors import NotFoundError
from spotwright.domain.telemetry import QueuedCommand

_CHUNK = 500  # rows in one question


class SqlCommands(StorePart):
    """What waits for agents."""

    def queue_command(self, command: QueuedCommand) -> None:
        """Keep a command until it is taken; NotFoundError where nobody has that name."""
        known = select(agents.c.agent_id).where(agents.c.agent_id == command.agent_id)
        with self._database.writing() as connection:
            if connection.execute(known).scalar() is None:
                raise NotFoundError("agent", command.agent_id)
            queued = claim_request(
                self._database,
                connection,
                kind="command",
                request_id=command.command_id,
                target_id=command.agent_id,
            )
            if queued is None:
                row = {
                    "command_id": command.command_id,
                    "agent_id": command.agent_id,
                    "document": command.document,
                }
                connection.execute(insert(commands), row)

    def take_commands(self, agent_ids: Collection[str]) -> Sequence[QueuedCommand]:
        """Return the commands that wait for these agents, oldest first, and forget them."""
        wanted = set(agent_ids)
        waiting = select(commands.c.row_number, commands.c.agent_id)
        with self._database.reading() as connection:  # mostly nothing waits, and nothing is locked
            numbers = [n for n, agent_id in connection.execute(waiting) if agent_id in wanted]
        taken = []
        for first in range(0, len(numbers), _CHUNK):
            taken += self._take(sorted(numbers)[first : first + _CHUNK])
        return taken

    def _take(self, numbers: Sequence[int]) -> list[QueuedCommand]:
        # A row that another replica takes at the same time is returned to one of the two.
        mine = select(commands.c.row_number).where(commands.c.row_number.in_(numbers))
        take = (
            delete(commands)
            .where(commands.c.row_number.in_(mine.with_for_update(skip_locked=True)))
            .returning(commands)
        )
        with self._database.writing() as connection:
            rows = sorted(connection.execute(take), key=lambda row: row.row_number)
        return [
            QueuedCommand(command_id=row.command_id, agent_id=row.agent_id, document=row.document)
            for row in rows
        ]
