"""Requests that were carried out, so that asking again changes nothing."""

from sqlalchemy import Connection, select

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
    claim = database.insert(requests).on_conflict_do_nothing().returning(requests.c.kind)
    values = {"kind": kind, "request_id": request_id, "target_id": target_id}
    if connection.execute(claim, values).first() is not None:
        return None
    return request_target(connection, kind=kind, request_id=request_id)


def request_target(connection: Connection, *, kind: str, request_id: str) -> str | None:
    """Return what a request was about."""
    same = (requests.c.kind == kind) & (requests.c.request_id == request_id)
    found: str | None = connection.execute(select(requests.c.target_id).where(same)).scalar()
    return found
