"""Rows of samples in Parquet files."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from spotwright.domain.telemetry import SampleRow

_TEXT = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "agent_id": _TEXT,
    "boot_id": _TEXT,
    "sequence": pa.int64(),
    "time_unix_ms": pa.int64(),
    "gpu_index": pa.int32(),
    "memory_used_bytes": pa.int64(),
    "throttle_reasons": pa.int64(),
    "uncorrected_error_count": pa.int64(),
    "last_xid": pa.int32(),
    "host_memory_used_bytes": pa.int64(),
}
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.float32())) for name in SampleRow._fields])


def write_rows(path: Path, pages: Iterable[Sequence[SampleRow]]) -> int:
    """Write a file of pages, each a row group, and return the number of rows."""
    row_count = 0
    with parquet.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for page in pages:
            if page:
                columns = zip(SCHEMA, zip(*page, strict=True), strict=True)
                arrays = [pa.array(values, field.type) for field, values in columns]
                writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))
                row_count += len(page)
    return row_count


def read_rows(
    path: Path, *, agent_id: str, start_unix_ms: int, end_unix_ms: int
) -> list[SampleRow]:
    """Return an agent's rows of [start, end)."""
    asked = [
        ("agent_id", "==", agent_id),
        ("time_unix_ms", ">=", start_unix_ms),
        ("time_unix_ms", "<", end_unix_ms),
    ]
    table = parquet.read_table(path, filters=asked)
    columns = [table.column(name).to_pylist() for name in SampleRow._fields]
    return [SampleRow(*values) for values in zip(*columns, strict=True)]
