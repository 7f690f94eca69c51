"""Lists in pages: how long a page is, and where the next one goes on, opaque to callers."""

import base64
import binascii
from datetime import datetime

from spotwright.domain.errors import BadInputError
from spotwright.usecases.store_ports import PageStart

_MOST = 1000


def page_size_of(asked: int, *, usual: int, most: int = _MOST) -> int:
    """Return how many entries a page has; 0 means the usual number."""
    if asked < 0:
        raise BadInputError(f"page_size must not be negative, got {asked}")
    return min(asked or usual, most)


def token_of(place: str) -> str:
    """Return the token that stands for a place in a list."""
    return base64.urlsafe_b64encode(place.encode()).decode()


def place_of(token: str) -> str:
    """Return the place that a token stands for; empty: the start."""
    try:
        place = base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise bad_token(token) from None
    if "\x00" in place:
        raise bad_token(token)
    return place


def start_token(create_time: datetime, last_id: str) -> str:
    """Return the token of the page after this entry of a list, newest first."""
    return token_of(f"{create_time.isoformat()} {last_id}")


def start_of(token: str) -> PageStart | None:
    """Return where a list, newest first, goes on; None for the first page."""
    if not token:
        return None
    time, _, last_id = place_of(token).partition(" ")
    try:
        create_time = datetime.fromisoformat(time)
    except ValueError:
        raise bad_token(token) from None
    if create_time.utcoffset() is None or not last_id:
        raise bad_token(token)
    return PageStart(create_time, last_id)


def bad_token(token: str) -> BadInputError:
    """Return the complaint about a token that no list gave."""
    shown = token if len(token) <= 40 else f"{token[:40]}..."
    return BadInputError(
        f"page_token {shown!r} is not one that a list returned; leave it out to start anew"
    )
