import multiprocessing
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from spotwright.adapters.history.read import read
from spotwright.adapters.history.segments import Segment, segments_in, window_at
from spotwright.adapters.history.write import write_due_segments
from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.telemetry import AgentFacts, SampleRow, StoredBatch
from spotwright.usecases.history_ports import Archived
from spotwright.usecases.store_ports import Retention
from tests.contracts.store_values import START_UNIX_S, new_agent, new_batch

_MARGIN_S = 120


def rows_of(batch: StoredBatch) -> Iterable[SampleRow]:
    """Make two GPUs of each batch, the first with figures."""
    blank = SampleRow(*batch.key, time_unix_ms=batch.receive_unix_ms - 500, interval_s=1.0)
    yield blank._replace(gpu_index=0, utilization_fraction=0.5, memory_used_bytes=2**40)
    yield blank._replace(gpu_index=1, cpu_fraction=0.25)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "history")


def _sent(url: str, times_s: Sequence[float], *, first_sequence: int = 1) -> AgentFacts:
    facts = new_agent(agent_id="agent-1")
    store = open_store(url)
    store.commit_batches(
        [new_batch(facts, first_sequence + i, at_s=at_s) for i, at_s in enumerate(times_s)]
    )
    store.close()
    return facts


def _write(url: str, folder: str, *, at_s: float, window_s: int = 300) -> Archived:
    return write_due_segments(
        url,
        folder,
        open_source=open_store,
        rows_of=rows_of,
        now_unix_s=START_UNIX_S + at_s,
        window_s=window_s,
    )


def _read(folder: str, *, start_s: float = 0.0, end_s: float = 1e6) -> list[SampleRow]:
    start_ms, end_ms = (round((START_UNIX_S + s) * 1000) for s in (start_s, end_s))
    return read(folder, "agent-1", start_unix_ms=start_ms, end_unix_ms=end_ms)


def test_samples_come_back_as_they_were_oldest_first(url: str, folder: str) -> None:
    _sent(url, [1.0, 2.0, 301.0])

    archived = _write(url, folder, at_s=600 + _MARGIN_S)

    assert archived == Archived(START_UNIX_S + 600, segment_count=2, row_count=6)
    found = _read(folder)
    assert [(row.sequence, row.gpu_index) for row in found] == [
        (sequence, gpu) for sequence in (1, 2, 3) for gpu in (0, 1)
    ]
    assert found[0] == SampleRow(
        *("agent-1", "boot-1", 1),
        time_unix_ms=START_UNIX_S * 1000 + 500,
        interval_s=1.0,
        gpu_index=0,
        utilization_fraction=0.5,
        memory_used_bytes=2**40,
    )
    assert [row.sequence for row in _read(folder, start_s=1.0, end_s=100.0)] == [2, 2]
    assert read(folder, "agent-2", start_unix_ms=0, end_unix_ms=2**52) == []


def test_a_window_is_written_only_when_it_is_over_by_a_margin(url: str, folder: str) -> None:
    _sent(url, [1.0, 301.0])

    early = _write(url, folder, at_s=300 + _MARGIN_S - 1)
    late = _write(url, folder, at_s=300 + _MARGIN_S)

    assert (early.segment_count, early.until_unix_s) == (0, START_UNIX_S)
    assert (late.segment_count, late.until_unix_s) == (1, START_UNIX_S + 300)


def test_no_window_is_written_twice_not_even_with_another_length(url: str, folder: str) -> None:
    _sent(url, [float(s) for s in range(0, 1200, 10)])

    for at_s, window_s in ((500, 300), (500, 300), (800, 60), (1500, 300), (1500, 120)):
        _write(url, folder, at_s=at_s, window_s=window_s)

    assert len(_read(folder, start_s=-10.0)) == 240


def test_every_sample_is_in_history_or_still_in_the_store(url: str, folder: str) -> None:
    _sent(url, [float(s) for s in range(0, 900, 10)])
    archived = _write(url, folder, at_s=700)
    store = open_store(url)
    store.prune(Retention(batches_unix_s=archived.until_unix_s, rollups_unix_s={}), limit=1000)

    left = store.batches("agent-1", start_unix_ms=0, end_unix_ms=2**52, limit=1000)
    store.close()

    in_history = {row.sequence for row in _read(folder, start_s=-10.0)}
    assert in_history.isdisjoint(batch.key.sequence for _, batch in left)
    assert len(in_history) + len(left) == 90


def test_windows_in_which_nothing_came_make_no_file(url: str, folder: str) -> None:
    _sent(url, [1.0, 1501.0])

    archived = _write(url, folder, at_s=3000)

    assert (archived.segment_count, archived.until_unix_s) == (2, START_UNIX_S + 2700)
    assert len(segments_in(Path(folder))) == 2


def test_an_empty_store_is_archived_until_the_last_window(url: str, folder: str) -> None:
    assert _write(url, folder, at_s=1000) == Archived(START_UNIX_S + 600, 0, 0)


def test_leftovers_of_a_crash_are_removed_and_files_of_others_stay(url: str, folder: str) -> None:
    _sent(url, [1.0])
    Path(folder).mkdir()
    (Path(folder) / "20270115T080000Z-20270115T080500Z.parquet.tmp").write_bytes(b"half")
    (Path(folder) / "notes.parquet").write_bytes(b"mine")

    _write(url, folder, at_s=600)

    names = sorted(path.name for path in Path(folder).iterdir())
    assert names == ["20270115T080000Z-20270115T080500Z.parquet", "notes.parquet"]
    assert len(_read(folder)) == 2


def test_a_folder_that_cannot_be_written_is_an_error_with_a_way_out(url: str, folder: str) -> None:
    Path(folder).write_text("a file")

    with pytest.raises(OutsideWorldError, match="make room, or name another folder"):
        _write(url, folder, at_s=600)


def test_samples_that_came_days_late_are_found_by_their_own_time(url: str, folder: str) -> None:
    facts = _sent(url, [1.0])
    store = open_store(url)
    store.commit_batches(
        [replace(new_batch(facts, 2), receive_unix_ms=(START_UNIX_S + 9000) * 1000)]
    )
    store.close()

    _write(url, folder, at_s=20_000)

    assert [row.sequence for row in _read(folder, start_s=8000.0)] == [2, 2]


def test_segments_are_written_by_a_spawned_process(url: str, folder: str) -> None:
    _sent(url, [1.0])
    spawn = multiprocessing.get_context("spawn")

    with ProcessPoolExecutor(1, mp_context=spawn) as processes:
        archived = processes.submit(
            write_due_segments,
            url,
            folder,
            open_source=open_store,
            rows_of=rows_of,
            now_unix_s=START_UNIX_S + 600.0,
        ).result(timeout=60)

    assert archived.row_count == 2


def test_importing_the_writer_and_the_reader_does_not_import_pyarrow() -> None:
    code = (
        "import sys, spotwright.adapters.history.write, spotwright.adapters.history.read;"
        "sys.exit('pyarrow' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_window_ends_on_a_whole_multiple_of_its_length_or_where_another_begins() -> None:
    written = [Segment(60, 130), Segment(160, 400)]

    assert window_at(150, [], window_s=100) == (100, 200)
    assert window_at(150, written, window_s=100) == (130, 160)
    assert window_at(399, written, window_s=100) == (160, 400)
    assert window_at(400, written, window_s=100) == (400, 500)


_DAY_S = 86_400.0


def test_a_clock_that_is_a_day_ahead_now_and_then_loses_nothing(url: str, folder: str) -> None:
    facts, sequence = new_agent(agent_id="agent-1"), 0
    late = [_DAY_S + 1_000, _DAY_S + 1_110]  # in windows that the clock was in a day before
    times_s = [*map(float, range(0, 3_000, 10)), *late]
    store = open_store(url)
    for round_s in (370, 400, 800, 1_700, 1_950, 2_990, _DAY_S + 900, _DAY_S + 3_000):
        while sequence < len(times_s) and times_s[sequence] < round_s:
            stamp_s = _wrong_clock(times_s[sequence])
            sequence += 1
            store.commit_batches([new_batch(facts, sequence, at_s=stamp_s)])
        archived = _write(url, folder, at_s=_wrong_clock(round_s))
        due_unix_s = START_UNIX_S + _wrong_clock(round_s) - _MARGIN_S
        assert archived.until_unix_s <= due_unix_s
        store.prune(Retention(archived.until_unix_s, rollups_unix_s={}), limit=1000)
    store.close()

    found = [(row.sequence, row.gpu_index) for row in _read(folder, start_s=-10.0)]

    assert len(found) == len(set(found)) == 2 * len(times_s)


def _wrong_clock(time_s: float) -> float:
    is_ahead = 350 <= time_s < 380 or 1_000 <= time_s < 1_900
    return time_s + _DAY_S if is_ahead else time_s


def test_a_batch_of_a_day_ahead_does_not_keep_later_ones_out(url: str, folder: str) -> None:
    _sent(url, [1.0, _DAY_S])
    _write(url, folder, at_s=_DAY_S + 600)
    _sent(url, [301.0, 601.0], first_sequence=3)

    archived = _write(url, folder, at_s=900 + _MARGIN_S)

    assert archived == Archived(START_UNIX_S + 900, segment_count=2, row_count=4)
    assert {row.sequence for row in _read(folder)} == {1, 2, 3, 4}


def test_years_without_a_batch_are_passed_over_at_once(url: str, folder: str) -> None:
    _sent(url, [1.0 - START_UNIX_S, 1.0])  # a host that started with the clock of 1970

    assert _write(url, folder, at_s=600).segment_count == 2
