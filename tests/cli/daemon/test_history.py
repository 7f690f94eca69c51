"""History as the daemon writes it: real batches, in a process of its own."""

import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spotwright.adapters.history.read import read
from spotwright.adapters.history.write import WINDOW_S
from spotwright.adapters.store.sql_store import open_store
from spotwright.cli.daemon.history import HistoryWriting
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.telemetry import AgentFacts, BatchKey, ReceivedBatch, SampleRow
from spotwright.usecases.history_ports import Archived
from spotwright.v1 import telemetry_pb2 as v1

RECEIVED_UNIX_S = 1_800_000_000  # where a window begins
LATER_UNIX_S = RECEIVED_UNIX_S + WINDOW_S + 200


def test_a_batch_of_the_wire_is_a_row_for_each_gpu_in_history(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path / 'daemon.db'}", tmp_path / "history"
    _store(url, _batch())

    archived = HistoryWriting(url, folder, clock=lambda: LATER_UNIX_S)(_always)

    rows = _read(folder)
    assert archived.row_count == len(rows) == 2
    assert [(row.gpu_index, row.utilization_fraction) for row in rows] == [(0, 0.25), (1, 0.5)]
    assert [row.last_xid for row in rows] == [None, 79]
    assert {row.host_memory_used_bytes for row in rows} == {2**40}
    assert {row.memory_used_bytes for row in rows} == {2**34}


def test_between_two_windows_nothing_is_written(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path / 'daemon.db'}", tmp_path / "history"
    _store(url, _batch())
    writing = HistoryWriting(url, folder, clock=lambda: LATER_UNIX_S)
    first = writing(_always)
    for file in folder.iterdir():
        file.unlink()

    again = writing(_always)

    assert (again.until_unix_s, again.segment_count) == (first.until_unix_s, 0)
    assert list(folder.iterdir()) == []


def test_a_clock_that_was_set_back_does_not_stop_history(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path / 'daemon.db'}", tmp_path / "history"
    _store(url, _batch())
    clock = iter([LATER_UNIX_S + 86_400.0, LATER_UNIX_S])
    writing = HistoryWriting(url, folder, clock=lambda: next(clock))
    writing(_always)

    assert writing(_always).until_unix_s <= LATER_UNIX_S


def test_a_round_that_is_told_to_stop_ends_at_once_and_the_next_one_writes(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path / 'daemon.db'}", tmp_path / "history"
    _store(url, _batch())
    writing = HistoryWriting(url, folder, clock=lambda: LATER_UNIX_S)
    with closing(sqlite3.connect(tmp_path / "daemon.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")  # whoever writes history waits for it
        other.execute("BEGIN EXCLUSIVE")
        stopped = writing(lambda: False)
        assert multiprocessing.active_children() == []

    assert stopped == Archived(0.0, 0, 0)
    assert writing(_always).segment_count == 1


def test_a_folder_that_cannot_be_written_is_said_where_history_was_asked_for(
    tmp_path: Path,
) -> None:
    url, folder = f"sqlite:///{tmp_path / 'daemon.db'}", tmp_path / "history"
    _store(url, _batch())
    folder.write_text("a file")

    with pytest.raises(OutsideWorldError, match="name another folder"):
        HistoryWriting(url, folder, clock=lambda: LATER_UNIX_S)(_always)


def _always() -> bool:
    return True


def _batch() -> v1.Batch:
    sample = v1.HostSample(
        time_unix_ms=RECEIVED_UNIX_S * 1000 + 500, interval_s=1.0, memory_used_bytes=2**40
    )
    sample.gpus.add(gpu_index=0, utilization_fraction=0.25, memory_used_bytes=2**34)
    sample.gpus.add(gpu_index=1, utilization_fraction=0.5, memory_used_bytes=2**34, last_xid=79)
    return v1.Batch(sequence=1, samples=[sample])


def _store(url: str, batch: v1.Batch) -> None:
    received_ms = RECEIVED_UNIX_S * 1000 + 900
    with closing(open_store(url)) as store:
        store.open_session(
            AgentFacts(agent_id="gpu-1", boot_id="boot-1"), session_id="s", replica="r"
        )
        store.commit_batches(
            [
                ReceivedBatch(
                    key=BatchKey("gpu-1", "boot-1", 1),
                    job_id="",
                    receive_unix_ms=received_ms,
                    first_unix_ms=received_ms - 400,
                    last_unix_ms=received_ms - 400,
                    clock_skew_s=0.0,
                    document=batch.SerializeToString(),
                    parts=(),
                )
            ]
        )


def _read(folder: Path) -> list[SampleRow]:
    start_ms = RECEIVED_UNIX_S * 1000
    return read(str(folder), "gpu-1", start_unix_ms=start_ms, end_unix_ms=start_ms + 10_000)
