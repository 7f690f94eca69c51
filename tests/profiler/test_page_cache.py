"""Files in and out of the page cache."""

import tempfile
from pathlib import Path

from spotwright.profiler import page_cache


def test_what_was_just_written_is_cached_and_read_back_whole_after_dropping(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(256)) * 4096)
    before = page_cache.cached_fraction((path,))

    page_cache.drop([path])
    after = page_cache.cached_fraction((path,))

    assert before == 1.0
    assert after in {0.0, 1.0}  # 1.0 where temporary files live in memory
    assert path.read_bytes() == bytes(range(256)) * 4096
    assert page_cache.cached_fraction((path,)) == 1.0


def test_empty_files_have_no_pages(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    assert page_cache.cached_fraction((tmp_path / "empty",)) == 0.0


def test_files_that_live_in_memory_stay_there() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "data"
        path.write_bytes(bytes(100_000))
        page_cache.drop([path])

        assert page_cache.cached_fraction((path,)) == 1.0
