import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.errors import BadInputError, StoreUnavailableError
from tests.adapters.store.stored_counts import rolled_up_counts, stored_sequences
from tests.contracts.store_values import in_threads, new_agent, new_batch

_ROOT = Path(__file__).parents[3]
_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def _locked_by_another_process(path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _LOCK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert _stream(process.stdout).readline() == b"locked\n"
        try:
            yield
        finally:
            _stream(process.stdin).close()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def test_a_locked_database_is_unavailable_in_time_and_then_works_again(tmp_path: Path) -> None:
    facts = new_agent()
    with closing(open_store(f"sqlite:///{tmp_path}/store.db", busy_timeout_s=0.3)) as store:
        store.commit_batches([new_batch(facts, 1)])
        with _locked_by_another_process(tmp_path / "store.db"):
            start_s = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="locked"):
                store.commit_batches([new_batch(facts, 2)])
            assert time.monotonic() - start_s < 5.0
            assert stored_sequences(store, facts.agent_id) == [1]

        assert store.commit_batches([new_batch(facts, 1), new_batch(facts, 2)])

        assert stored_sequences(store, facts.agent_id) == [1, 2]
        assert rolled_up_counts(store, facts.agent_id) == {10: 2, 60: 2}


def test_threads_that_wait_for_a_locked_database_all_give_up_in_time(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/store.db", busy_timeout_s=0.3)) as store:

        def fail(worker: int) -> None:
            with pytest.raises(StoreUnavailableError):
                store.acquire_lease(f"lease-{worker}", "a", ttl_s=1.0)

        with _locked_by_another_process(tmp_path / "store.db"):
            start_s = time.monotonic()
            in_threads(8, fail)
            assert time.monotonic() - start_s < 5.0


def test_a_full_disk_is_unavailable_and_loses_or_doubles_nothing(tmp_path: Path) -> None:
    # In a process of its own, whose files may not grow beyond a limit.
    command = [sys.executable, "-m", "tests.adapters.store.test_sqlite_faults", str(tmp_path)]

    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def _fill_the_disk(folder: str) -> None:
    facts, sequence, failed_count = new_agent(), 0, 0
    with closing(open_store(f"sqlite:///{folder}/store.db")) as store:
        store.open_session(facts, session_id="s", replica="r")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
        while failed_count < 3:
            batches = [new_batch(facts, sequence + i) for i in range(1, 21)]
            try:
                assert len(store.commit_batches(batches)) == 20
                sequence += 20
            except StoreUnavailableError:
                failed_count += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert stored_sequences(store, facts.agent_id) == list(range(1, sequence + 1))
        assert len(store.commit_batches([new_batch(facts, sequence + 1)])) == 1
        assert rolled_up_counts(store, facts.agent_id) == {10: sequence + 1, 60: sequence + 1}
        assert sequence > 0


def test_a_writer_killed_five_times_loses_nothing_acknowledged_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    url, acknowledged = f"sqlite:///{tmp_path}/store.db", set[int]()
    command = [sys.executable, "-m", "tests.adapters.store.batch_writer", url, "agent-1"]
    for commit_count in (1, 17, 40, 63, 90):
        with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE) as process:
            output = _stream(process.stdout)
            lines = [output.readline() for _ in range(commit_count)]
            process.kill()
            lines += [line for line in output if line.endswith(b"\n")]
        acknowledged |= {int(sequence) for line in lines for sequence in line.split()}

    with closing(open_store(url)) as store:
        stored = stored_sequences(store, "agent-1")
        assert len(stored) == len(set(stored))
        assert acknowledged <= set(stored)
        assert stored == list(range(1, max(stored) + 1))
        assert rolled_up_counts(store, "agent-1") == {10: len(stored), 60: len(stored)}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://localhost/x", "'mysql' is not supported; give sqlite:///PATH or postgresql://"),
        (
            "sqlite+pysqlite:///store.db",
            r"'sqlite\+pysqlite' is not supported; give sqlite:///PATH",
        ),
        ("postgresql+psycopg://u@h/d", r"'postgresql\+psycopg' is not supported; give sqlite:///"),
        ("sqlite:///store.db?timeout=9", "has options, SQLite takes none; give sqlite:///PATH"),
        ("store.db", "'store.db' is not a URL; give sqlite:///PATH"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:////dev/null/store.db", "cannot be written"),
    ],
)
def test_a_url_that_cannot_be_used_is_an_error_with_a_way_out(url: str, problem: str) -> None:
    with pytest.raises(BadInputError, match=problem):
        open_store(url)


def test_a_file_that_is_no_database_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"plain text, no database " * 100)

    with pytest.raises(BadInputError, match="is not a database"):
        open_store(f"sqlite:///{tmp_path}/store.db")


def test_the_database_is_safe_against_a_loss_of_power(tmp_path: Path) -> None:
    with (
        closing(open_store(f"sqlite:///{tmp_path}/store.db")) as store,
        store._database.reading() as connection,
    ):
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }

    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    assert sqlite3.threadsafety == 3


if __name__ == "__main__":
    _fill_the_disk(sys.argv[1])
