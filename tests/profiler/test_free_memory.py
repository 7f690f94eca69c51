"""Free memory, of a host and of a control group."""

import os
from pathlib import Path

from spotwright.profiler.free_memory import free_memory_bytes, free_of_group


def test_memory_that_is_free_is_less_than_all_memory() -> None:
    whole, free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), free_memory_bytes()

    assert free is not None
    assert 0 < free < whole


def test_files_that_the_kernel_would_drop_leave_a_group_its_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 200\ninactive_file 600\nactive_file 100\n")

    assert free_of_group(tmp_path) == 700


def test_a_group_without_a_limit_tells_none(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 200\n")

    assert free_of_group(tmp_path) is None
