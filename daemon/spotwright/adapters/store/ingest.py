"""Batches into the database, each once.

A batch is new if its sequence is beyond the mark of its boot. The mark is read under a lock and
moves in the transaction that stores the batch, so this holds for replicas that take the same batch
at once, and after the batch itself was pruned; a unique key on (boot, sequence) would catch a flaw.
"""

import threading
from collections.abc import Iterable, Sequence, Set
from typing import Any

from sqlalchemy import Connection, update

from spotwright.adapters.store.boots import BootName, Mark, lock_marks, moves, prepare_moves
from spotwright.adapters.store.database import Database
from spotwright.adapters.store.host_news import store_news
from spotwright.adapters.store.job_steps import add_steps
from spotwright.adapters.store.open_rollups import Drafts, OpenRollups, rows_of
from spotwright.adapters.store.prepared_statement import PreparedStatement
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import batches as batches_table
from spotwright.adapters.store.tables import rollups
from spotwright.domain.telemetry import BatchKey, ReceivedBatch

_BATCH_COLUMNS = {c.name: c for c in batches_table.c if c.name != "row_number"}


class _PartGoneError(Exception):
    """A rollup that is being added to was added up into a coarser one meanwhile."""


class SqlIngest(StorePart):
    """The way in for telemetry."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._one_commit = threading.Lock()
        self._open_rollups = OpenRollups()
        self._advance = prepare_moves(database)
        self._keep_batches = database.prepare(
            database.given_rows(_BATCH_COLUMNS).into(database.insert(batches_table))
        )
        self._keep_rollups = database.prepare(
            database.given_rows(dict(rollups.c.items())).into(database.insert(rollups))
        )
        self._replace_rollups = _prepare_replace(database)

    def commit_batches(self, batches: Sequence[ReceivedBatch]) -> Set[BatchKey]:
        """Store batches for good, in one step; return those that were not stored before."""
        if not batches:
            return frozenset()
        with self._one_commit:
            try:
                return self._commit(batches)
            except _PartGoneError:  # all parts are new ones now, so this cannot happen again
                return self._commit(batches)

    def _commit(self, batches: Sequence[ReceivedBatch]) -> Set[BatchKey]:
        try:
            with self._database.writing() as connection:
                new, drafts = self._store(connection, batches)
        except BaseException:
            self._open_rollups.forget()  # whether it was kept is not known
            raise
        self._open_rollups.adopt(drafts)
        return {batch.key for batch in new}

    def _store(
        self, connection: Connection, batches: Sequence[ReceivedBatch]
    ) -> tuple[list[ReceivedBatch], Drafts]:
        marks = lock_marks(self._database, connection, {batch.key[:2] for batch in batches})
        new = _beyond(marks, batches)
        drafts = self._open_rollups.draft(new)
        if new:
            self._keep_batches.run(connection, [_row(batch, marks) for batch in new])
            self._advance.run(connection, moves(new, marks))
            store_news(connection, new)
            add_steps(self._database, connection, new)
        self._keep_rollups.run(connection, rows_of(drafts, stored=False))
        known = rows_of(drafts, stored=True)
        if self._replace_rollups.run(connection, known) != len(known):
            raise _PartGoneError
        return new, drafts


def _prepare_replace(database: Database) -> PreparedStatement:
    given = database.given_rows(dict(rollups.c.items())).value
    same = [column == given[column.name] for column in rollups.primary_key.columns]
    return database.prepare(update(rollups).where(*same).values(document=given["document"]))


def _beyond(marks: dict[BootName, Mark], batches: Iterable[ReceivedBatch]) -> list[ReceivedBatch]:
    """Keep batches that were not seen before, those of each boot in order."""
    reached = {name: mark.last_sequence for name, mark in marks.items()}
    new = []
    for batch in sorted(batches, key=lambda batch: batch.key.sequence):
        name, sequence = batch.key[:2], batch.key.sequence
        if sequence > reached[name]:
            reached[name] = sequence
            new.append(batch)
    return new


def _row(batch: ReceivedBatch, marks: dict[BootName, Mark]) -> dict[str, Any]:
    return {
        "boot_number": marks[batch.key[:2]].boot_number,
        "sequence": batch.key.sequence,
        "receive_unix_ms": batch.receive_unix_ms,
        "first_unix_ms": batch.first_unix_ms,
        "last_unix_ms": batch.last_unix_ms,
        "clock_skew_s": batch.clock_skew_s,
        "document": batch.document,
    }
