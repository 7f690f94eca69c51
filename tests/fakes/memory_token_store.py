"""A token store that keeps its tokens in memory, and can be away."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.access import TokenRecord
from spotwright.domain.errors import NotFoundError, StoreUnavailableError


class MemoryTokenStore:
    """Counts how often it is asked for a token."""

    def __init__(self) -> None:
        self.records: dict[str, TokenRecord] = {}
        self.query_count = 0
        self.is_away = False

    def add_token(self, token: TokenRecord) -> None:
        self.records[token.token_id] = token

    def token(self, token_id: str) -> TokenRecord | None:
        self.query_count += 1
        if self.is_away:
            raise StoreUnavailableError("the store is away")
        return self.records.get(token_id)

    def tokens(self) -> Sequence[TokenRecord]:
        return sorted(self.records.values(), key=lambda token: (token.name, token.create_time))

    def revoke_token(self, token_id: str, *, time: datetime) -> None:
        if token_id not in self.records:
            raise NotFoundError("token", token_id)
        self.records[token_id] = replace(self.records[token_id], revoke_time=time)
