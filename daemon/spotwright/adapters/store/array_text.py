"""Arrays as PostgreSQL reads them from text: a quarter of the driver's own CPU time."""

from collections.abc import Callable, Iterable
from typing import Any


def array_text(values: Iterable[Any], kind: type) -> str:
    """Write an array of int, float, str or bytes; None becomes NULL."""
    write = _WRITERS[kind]
    return "{" + ",".join(["NULL" if v is None else write(v) for v in values]) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _hexadecimal(value: bytes) -> str:
    return f'"\\\\x{value.hex()}"'


_WRITERS: dict[type, Callable[[Any], str]] = {
    int: str,
    float: repr,
    str: _quoted,
    bytes: _hexadecimal,
}
