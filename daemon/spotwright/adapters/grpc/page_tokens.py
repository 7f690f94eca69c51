"""Where a list goes on, as callers hand it back: opaque, and checked."""

import base64
import binascii
import json
from datetime import datetime

from spotwright.domain.errors import BadInputError
from spotwright.usecases.store_ports import PageStart

_MAX_PAGE_SIZE = 1000


def page_size_of(asked: int, *, usual: int) -> int:
    """Return how many entries a page has; 0 means the usual number."""
    if asked < 0:
        raise BadInputError(f"page_size must not be negative, got {asked}")
    return min(asked or usual, _MAX_PAGE_SIZE)


def token_of(create_time: datetime, last_id: str) -> str:
    """Return the token of the page after this entry."""
    place = json.dumps([create_time.isoformat(), last_id])
    return base64.urlsafe_b64encode(place.encode()).decode()


def read_token(token: str) -> PageStart | None:
    """Return where a page goes on; None for the first page."""
    if not token:
        return None
    try:
        create_time, last_id = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
        place = PageStart(datetime.fromisoformat(create_time), str(last_id))
    except (ValueError, TypeError, binascii.Error):
        raise _no_token(token) from None
    if place.create_time.utcoffset() is None:
        raise _no_token(token)
    return place


def _no_token(token: str) -> BadInputError:
    shown = token if len(token) <= 40 else f"{token[:40]}..."
    return BadInputError(
        f"page_token {shown!r} is not one that a list returned; leave it out to start anew"
    )
