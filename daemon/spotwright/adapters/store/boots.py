"""How far each boot of each agent has come, and its latest figures."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select, tuple_, update

from spotwright.adapters.store.database import Database
from spotwright.adapters.store.prepared_statement import PreparedStatement
from spotwright.adapters.store.tables import agent_boots
from spotwright.domain.telemetry import ReceivedBatch

BootName = tuple[str, str]  # agent id and boot id
_CHUNK = 500  # names in one question

_BOOTS = agent_boots.c
_FIND = (
    select(_BOOTS.agent_id, _BOOTS.boot_id, _BOOTS.boot_number, _BOOTS.last_sequence)
    .where(tuple_(_BOOTS.agent_id, _BOOTS.boot_id).in_(bindparam("names", expanding=True)))
    .order_by(_BOOTS.agent_id, _BOOTS.boot_id)  # so that two replicas never wait for each other
    .with_for_update()
)
_MOVE_COLUMNS = {
    "number": _BOOTS.boot_number,
    "to_sequence": _BOOTS.last_sequence,
    "dropped": _BOOTS.dropped_sample_count,
    "seen": _BOOTS.last_seen_unix_ms,
    "skew": _BOOTS.clock_skew_s,
    "sample": _BOOTS.latest_sample,
    "step": _BOOTS.latest_step,
    "new_faults": _BOOTS.faults,
}


class Mark(NamedTuple):
    """Where a boot stands."""

    boot_number: int
    last_sequence: int


def lock_marks(
    database: Database, connection: Connection, names: Collection[BootName]
) -> dict[BootName, Mark]:
    """Return where boots stand; until this transaction ends nobody else moves them."""
    found = _found(connection, names)
    missing = sorted(set(names) - found.keys())
    if missing:
        start = database.insert(agent_boots).on_conflict_do_nothing()
        connection.execute(start, [new_boot(name) for name in missing])
        found |= _found(connection, missing)
    return found


def new_boot(name: BootName) -> dict[str, Any]:
    """Return the row of a boot that sent nothing yet."""
    return {
        "agent_id": name[0],
        "boot_id": name[1],
        "last_sequence": 0,
        "dropped_sample_count": 0,
        "clock_skew_s": 0.0,
    }


def prepare_moves(database: Database) -> PreparedStatement:
    """Return the statement that takes what `moves` returns."""
    move = database.given_rows(_MOVE_COLUMNS).value
    advance = (
        update(agent_boots)
        .where(_BOOTS.boot_number == move["number"])
        .values(
            last_sequence=move["to_sequence"],
            dropped_sample_count=_BOOTS.dropped_sample_count + move["dropped"],
            last_seen_unix_ms=move["seen"],
            clock_skew_s=move["skew"],
            latest_sample=func.coalesce(move["sample"], _BOOTS.latest_sample),
            latest_step=func.coalesce(move["step"], _BOOTS.latest_step),
            faults=func.coalesce(move["new_faults"], _BOOTS.faults),
        )
    )
    return database.prepare(advance)


def moves(batches: Iterable[ReceivedBatch], marks: dict[BootName, Mark]) -> list[dict[str, Any]]:
    """Return how new batches move the marks; those of a boot come in their order."""
    found: dict[int, dict[str, Any]] = {}
    for batch in batches:
        number = marks[batch.key[:2]].boot_number
        move, before = _move(number, batch), found.get(number)
        if before is not None:
            move["dropped"] += before["dropped"]
            for latest in ("sample", "step", "new_faults"):
                if move[latest] is None:
                    move[latest] = before[latest]
        found[number] = move
    return list(found.values())


def _move(boot_number: int, batch: ReceivedBatch) -> dict[str, Any]:
    return {
        "number": boot_number,
        "to_sequence": batch.key.sequence,
        "dropped": batch.dropped_sample_count,
        "seen": batch.receive_unix_ms,
        "skew": batch.clock_skew_s,
        "sample": batch.latest_sample,
        "step": batch.latest_step,
        "new_faults": batch.faults,
    }


def _found(connection: Connection, names: Collection[BootName]) -> dict[BootName, Mark]:
    ordered, marks = sorted(names), dict[BootName, Mark]()
    for first in range(0, len(ordered), _CHUNK):
        rows = connection.execute(_FIND, {"names": ordered[first : first + _CHUNK]})
        marks |= {(agent, boot): Mark(number, last) for agent, boot, number, last in rows}
    return marks
