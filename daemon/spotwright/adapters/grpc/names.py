"""Names that callers choose: short enough and plain enough for every store."""

from spotwright.domain.errors import BadInputError

_LONGEST_NAME = 200


def checked(field: str, text: str, *, longest: int = _LONGEST_NAME) -> str:
    """Return a text that every store can keep, or raise BadInputError."""
    if len(text) > longest:
        raise BadInputError(f"{field} has {len(text):,} letters; {longest:,} are the most")
    if "\x00" in text:
        raise BadInputError(f"{field} holds a zero byte; leave it out")
    return text
