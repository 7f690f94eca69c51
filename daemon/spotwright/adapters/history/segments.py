"""Segments: files of history, each of one window of receive time, named by it.

Segments are written oldest first, so everything before the end of the newest one is archived.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

_SUFFIX = ".parquet"
TEMPORARY_SUFFIX = ".tmp"
_TIME = "%Y%m%dT%H%M%SZ"


class Segment(NamedTuple):
    """One window of receive time, [start, end)."""

    start_unix_s: int
    end_unix_s: int

    @property
    def file_name(self) -> str:
        """Return the name of its file."""
        start, end = (datetime.fromtimestamp(t, UTC).strftime(_TIME) for t in self)
        return f"{start}-{end}{_SUFFIX}"


def segments_in(folder: Path) -> list[Segment]:
    """Return what was written, oldest first; files of others are left out."""
    found = (_segment(path.name) for path in folder.glob(f"*{_SUFFIX}"))
    return sorted(segment for segment in found if segment is not None)


def due_segments(
    *, first_unix_s: float, archived_unix_s: int | None, due_unix_s: float, window_s: int
) -> Iterable[Segment]:
    """Return windows that are over, oldest first.

    Args:
        first_unix_s: when the oldest batch was received.
        archived_unix_s: until when all is archived; None where nothing is.
        due_unix_s: windows that end later wait.
        window_s: their length; those of another length, written before, are left as they are.
    """
    start = int(first_unix_s) // window_s * window_s
    if archived_unix_s is not None:
        start = max(start, archived_unix_s)
    while (end := (start // window_s + 1) * window_s) <= due_unix_s:
        yield Segment(start, end)
        start = end


def _segment(name: str) -> Segment | None:
    ends = name.removesuffix(_SUFFIX).split("-")
    try:
        start, end = (datetime.strptime(text, _TIME).replace(tzinfo=UTC) for text in ends)
    except ValueError:
        return None
    return Segment(int(start.timestamp()), int(end.timestamp()))
