"""History, read back."""

from pathlib import Path

from spotwright.adapters.history.segments import segments_in
from spotwright.domain.telemetry import SampleRow


def read(folder: str, agent_id: str, *, start_unix_ms: int, end_unix_ms: int) -> list[SampleRow]:
    """Return an agent's samples of [start, end), oldest first.

    A sample is received after it was taken, however late: later segments are searched as well.
    """
    from spotwright.adapters.history.parquet import read_rows  # noqa: PLC0415 - 60 MB of memory

    rows: list[SampleRow] = []
    for segment in segments_in(Path(folder)):
        if segment.end_unix_s * 1000 > start_unix_ms:
            path = Path(folder) / segment.file_name
            rows += read_rows(
                path, agent_id=agent_id, start_unix_ms=start_unix_ms, end_unix_ms=end_unix_ms
            )
    return sorted(rows, key=_order)


def _order(row: SampleRow) -> tuple[int, int]:
    return row.time_unix_ms, -1 if row.gpu_index is None else row.gpu_index
