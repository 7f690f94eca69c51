"""Requests that were carried out, so that asking again changes nothing."""

from sqlalchemy import Connection, delete, select, tuple_

from spotwright.adapters.store.database import Database
from spotwright.adapters.store.tables import requests


def claim_request(
    database: Database, connection: Connection, *, kind: str, request_id: str, target_id: str
) -> str | None:
    """Note that a request is carried out; return what it was about if it was before.

    Someone who is carrying out the same request right now is waited for.
    """
    if not request_id:
        return None
    claim = database.insert(requests).values(
        kind=kind, request_id=request_id, target_id=target_id, claim_unix_s=database.now_unix_s
    )
    claimed = claim.on_conflict_do_nothing().returning(requests.c.kind)
    if connection.execute(claimed).first() is not None:
        return None
    return request_target(connection, kind=kind, request_id=request_id)


def request_target(connection: Connection, *, kind: str, request_id: str) -> str | None:
    """Return what a request was about."""
    same = (requests.c.kind == kind) & (requests.c.request_id == request_id)
    found: str | None = connection.execute(select(requests.c.target_id).where(same)).scalar()
    return found


def prune_requests(connection: Connection, before_unix_s: float, *, limit: int) -> int:
    """Forget at most `limit` requests of before; who asks again then asks for something new."""
    key = list(requests.primary_key.columns)
    old = select(*key).where(requests.c.claim_unix_s < before_unix_s).limit(limit)
    old = old.with_for_update(skip_locked=True)
    return connection.execute(delete(requests).where(tuple_(*key).in_(old))).rowcount
