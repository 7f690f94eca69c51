"""What every store must do with tokens."""

from dataclasses import replace
from datetime import timedelta

import pytest

from spotwright.domain.access import AccessRole, TokenRecord
from spotwright.domain.errors import NotFoundError
from spotwright.usecases.store_ports import Store
from tests.contracts.store_values import TIME, unused


class TokenStoreContract:
    """Tests that a subclass inherits."""

    def test_a_token_comes_back_as_it_was_kept(self, store: Store) -> None:
        token = _token()
        store.add_token(token)

        assert store.token(token.token_id) == token
        assert store.token("token-0") is None

    def test_tokens_come_by_name_and_time(self, store: Store) -> None:
        late = _token(name="ci")
        early = replace(_token(name="ci"), create_time=TIME - timedelta(days=1))
        first = _token(name="alice")
        made = [late, early, first]
        for token in made:
            store.add_token(token)

        assert [token for token in store.tokens() if token in made] == [first, early, late]

    def test_a_revoked_token_stays_revoked_from_the_first_time_on(self, store: Store) -> None:
        token = _token()
        store.add_token(token)

        store.revoke_token(token.token_id, time=TIME)
        store.revoke_token(token.token_id, time=TIME + timedelta(days=1))

        assert store.token(token.token_id) == replace(token, revoke_time=TIME)

    def test_a_token_nobody_has_cannot_be_revoked(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no token 'token-0'"):
            store.revoke_token("token-0", time=TIME)


def _token(*, name: str = "ci") -> TokenRecord:
    return TokenRecord(
        token_id=unused("token"),
        name=name,
        role=AccessRole.PLANNER,
        secret_hash="scrypt$abc",
        create_time=TIME,
        expire_time=TIME + timedelta(days=30),
    )
