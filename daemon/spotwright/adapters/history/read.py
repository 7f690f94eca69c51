"""History, read back."""

from pathlib import Path

from spotwright.adapters.history.segments import files_after
from spotwright.domain.telemetry import SampleRow


def read(folder: str, agent_id: str, *, start_unix_ms: int, end_unix_ms: int) -> list[SampleRow]:
    """Return an agent's samples of [start, end), oldest first.

    A sample is received after it was taken, however late: later segments are searched as well.
    """
    from spotwright.adapters.history.parquet import read_rows  # noqa: PLC0415 - 60 MB of memory

    rows: set[SampleRow] = set()  # a row may stand in two files
    for path in files_after(Path(folder), unix_s=start_unix_ms / 1000):
        rows.update(
            read_rows(path, agent_id=agent_id, start_unix_ms=start_unix_ms, end_unix_ms=end_unix_ms)
        )
    return sorted(rows, key=_order)


def _order(row: SampleRow) -> tuple[int, int, str, int]:
    gpu_index = -1 if row.gpu_index is None else row.gpu_index
    return row.time_unix_ms, gpu_index, row.boot_id, row.sequence
