"""Tokens of people and machines: made, listed, ended and recognised.

A token reads `sw_ID_SECRET`. The id is no secret; of the secret only its SHA-256 is kept. Its 256
random bits leave nothing to guess, so that a slow hash would protect nothing more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_hex, token_urlsafe

from spotwright.domain.access import AccessRole, TokenRecord
from spotwright.domain.errors import BadInputError
from spotwright.usecases.store_ports import TokenStore

_ID_BYTES = 6
_SECRET_BYTES = 32
_TOKEN = re.compile(r"sw_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentedToken:
    """A token as a caller presents it."""

    token_id: str
    secret: str = field(repr=False)

    def fits(self, record: TokenRecord) -> bool:
        """Tell whether this is the token of a record, in a time that tells nothing about it."""
        return compare_digest(_hashed(self.secret), record.secret_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was made just now: the only time that its text is known."""

    text: str = field(repr=False)
    record: TokenRecord


def create_token(
    store: TokenStore,
    *,
    name: str,
    role: AccessRole,
    valid_s: float | None,
    now: datetime,
) -> NewToken:
    """Make a token and keep its hash.

    Args:
        store: where it is kept.
        name: of the person or machine that will have it.
        role: viewer, planner or admin; agents have certificates.
        valid_s: how long; None: until it is revoked.
        now: the time.
    """
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"{name!r} cannot be the name of a token: use 1 to 63 letters, digits, dots, dashes, "
            "underscores and @, a letter or digit first"
        )
    if role is AccessRole.AGENT:
        raise BadInputError(
            "an agent is known by its certificate, not by a token: run `spotwright certs issue "
            "--dir DIR agent ID`, or choose viewer, planner or admin"
        )
    secret = token_urlsafe(_SECRET_BYTES)
    record = TokenRecord(
        token_id=token_hex(_ID_BYTES),
        name=name,
        role=role,
        secret_hash=_hashed(secret),
        create_time=now,
        expire_time=_expire_time(now, valid_s),
    )
    store.add_token(record)
    return NewToken(text=f"sw_{record.token_id}_{secret}", record=record)


def list_tokens(store: TokenStore) -> Sequence[TokenRecord]:
    """Return all tokens, those that have ended, too."""
    return store.tokens()


def revoke_token(store: TokenStore, token_id: str, *, now: datetime) -> None:
    """End a token; NotFoundError where none has this id."""
    store.revoke_token(token_id, time=now)


def read_token(text: str) -> PresentedToken | None:
    """Return what a caller presents, or None where it cannot be a token."""
    found = _TOKEN.fullmatch(text)
    return PresentedToken(token_id=found[1], secret=found[2]) if found else None


def _hashed(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _expire_time(now: datetime, valid_s: float | None) -> datetime | None:
    if valid_s is None:
        return None
    try:
        return now + timedelta(seconds=valid_s)
    except OverflowError as error:
        raise BadInputError(
            "--expires lies beyond the calendar; leave it out for a token without end"
        ) from error
