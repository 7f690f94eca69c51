"""Tokens of people and machines in the database."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, literal, select, update

from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import Moment, tokens
from spotwright.domain.access import AccessRole, TokenRecord
from spotwright.domain.errors import NotFoundError


class SqlTokens(StorePart):
    """Hashes of tokens, never tokens."""

    def add_token(self, token: TokenRecord) -> None:
        """Keep a token."""
        keep = self._database.insert(tokens).on_conflict_do_nothing()
        with self._database.writing() as connection:
            connection.execute(keep, asdict(token))

    def token(self, token_id: str) -> TokenRecord | None:
        """Return a token."""
        query = select(tokens).where(tokens.c.token_id == token_id)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else _record(row)

    def tokens(self) -> Sequence[TokenRecord]:
        """Return all tokens, by name and time."""
        query = select(tokens).order_by(tokens.c.name, tokens.c.create_time, tokens.c.token_id)
        with self._database.reading() as connection:
            return [_record(row) for row in connection.execute(query)]

    def revoke_token(self, token_id: str, *, time: datetime) -> None:
        """End a token, unless it was ended before; NotFoundError where nobody has that name."""
        first = func.coalesce(tokens.c.revoke_time, literal(time, Moment))
        end = update(tokens).where(tokens.c.token_id == token_id).values(revoke_time=first)
        with self._database.writing() as connection:
            if not connection.execute(end).rowcount:
                raise NotFoundError("token", token_id)


def _record(row: Row[Any]) -> TokenRecord:
    return TokenRecord(**row._asdict() | {"role": AccessRole(row.role)})
