"""History that is due, written. Runs in a process of its own: pyarrow takes 60 MB of memory."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from spotwright.adapters.history.segments import (
    TEMPORARY_SUFFIX,
    Segment,
    segments_in,
    set_early_ones_aside,
    window_at,
)
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.telemetry import SampleRow
from spotwright.usecases.history_ports import (
    Archived,
    ClosableHistorySource,
    OpenSource,
    RowsOf,
)

WINDOW_S = 300
_MARGIN_S = 120.0  # a batch that was received in a window is stored no later than this after it
_PAGE_COUNT = 5_000  # batches in memory at once


def write_due_segments(
    url: str,
    folder: str,
    *,
    open_source: OpenSource,
    rows_of: RowsOf,
    now_unix_s: float,
    window_s: int = WINDOW_S,
) -> Archived:
    """Write each window that is over by a margin and was not written before.

    All arguments can be sent to another process. One process at a time may write to a folder.

    Raises:
        OutsideWorldError: the folder cannot be written; nothing incomplete is left under a name.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _remove_leftovers(Path(folder))
        with closing(open_source(url)) as source:
            return _write_due(
                source, Path(folder), rows_of, due_unix_s=now_unix_s - _MARGIN_S, window_s=window_s
            )
    except OSError as error:
        raise OutsideWorldError(
            f"history in {folder} cannot be written ({error.strerror or error}); "
            "make room, or name another folder"
        ) from error


def _remove_leftovers(folder: Path) -> None:
    for path in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        path.unlink()


def _write_due(
    source: ClosableHistorySource,
    folder: Path,
    rows_of: RowsOf,
    *,
    due_unix_s: float,
    window_s: int,
) -> Archived:
    set_early_ones_aside(folder, due_unix_s=due_unix_s)
    written = segments_in(folder)
    segment_count = row_count = 0
    next_ms = source.oldest_batch_unix_ms()
    while next_ms is not None:
        segment = window_at(next_ms // 1000, written, window_s=window_s)
        if segment.end_unix_s > due_unix_s:
            break
        if segment not in written:
            rows = _write(source, folder, segment, rows_of)
            segment_count, row_count = segment_count + (rows > 0), row_count + rows
        next_ms = source.oldest_batch_unix_ms(since_unix_ms=segment.end_unix_s * 1000)
    return Archived(int(due_unix_s) // window_s * window_s, segment_count, row_count)


def _write(source: ClosableHistorySource, folder: Path, segment: Segment, rows_of: RowsOf) -> int:
    """Write one segment, and return its number of rows; none, and there is no file."""
    from spotwright.adapters.history.parquet import write_rows  # noqa: PLC0415 - 60 MB

    temporary = folder / f"{segment.file_name}{TEMPORARY_SUFFIX}"
    row_count = write_rows(temporary, _pages(source, segment, rows_of))
    if row_count == 0:
        temporary.unlink()
        return 0
    _sync(temporary)
    temporary.rename(folder / segment.file_name)
    _sync(folder)
    return row_count


def _pages(
    source: ClosableHistorySource, segment: Segment, rows_of: RowsOf
) -> Iterator[list[SampleRow]]:
    after = 0
    while page := source.received_batches(
        start_unix_ms=segment.start_unix_s * 1000,
        end_unix_ms=segment.end_unix_s * 1000,
        after=after,
        limit=_PAGE_COUNT,
    ):
        yield [row for _, batch in page for row in rows_of(batch)]
        after = page[-1][0]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
