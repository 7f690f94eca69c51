"""Segments: files of history, each of one window of receive time, named by it.

A window that has a file is not written again. A file of a window that is not over yet was written
while the clock was ahead: it is set aside under a name with a number, so that the window is written
when it is really over; what stands in both files is read once.
"""

import itertools
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
    named = (segment for segment in found if segment is not None)
    return sorted(segment for segment in named if (folder / segment.file_name).exists())


def set_early_ones_aside(folder: Path, *, due_unix_s: float) -> None:
    """Give files of windows that are not due yet names that stand for no window."""
    for segment in segments_in(folder):
        path = folder / segment.file_name
        if segment.end_unix_s > due_unix_s:
            numbered = (path.with_stem(f"{path.stem}-{n}") for n in itertools.count(2))
            path.rename(next(name for name in numbered if not name.exists()))


def files_after(folder: Path, *, unix_s: float) -> list[Path]:
    """Return files of windows that end later, those that were set aside too; oldest first."""
    found = ((_segment(path.name), path) for path in folder.glob(f"*{_SUFFIX}"))
    return sorted(path for segment, path in found if segment and segment.end_unix_s > unix_s)


def window_at(unix_s: int, written: Iterable[Segment], *, window_s: int) -> Segment:
    """Return the window of a time, without what was written of it, maybe with another length.

    Where the time itself was written, return that segment.
    """
    start = unix_s // window_s * window_s
    end = start + window_s
    for segment in written:
        if segment.start_unix_s <= unix_s < segment.end_unix_s:
            return segment
        if segment.end_unix_s <= unix_s:
            start = max(start, segment.end_unix_s)
        else:
            end = min(end, segment.start_unix_s)
    return Segment(start, end)


def _segment(name: str) -> Segment | None:
    ends = name.removesuffix(_SUFFIX).split("-")[:2]
    try:
        start, end = (datetime.strptime(text, _TIME).replace(tzinfo=UTC) for text in ends)
    except ValueError:
        return None
    return Segment(int(start.timestamp()), int(end.timestamp()))
