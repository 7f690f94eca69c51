"""Result files are replaced in one step, and keep what their owner decided about them."""

import os
import stat
from pathlib import Path

import pytest

from spotwright.cli.terminal import write_text
from spotwright.domain.errors import OutsideWorldError
from tests.cli.command import python


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "job.yaml"
    file.touch()
    file.chmod(mode)

    write_text(file, "new")

    assert (file.read_text(), _mode(file)) == ("new", mode)
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_has_the_mode_any_other_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "other").touch()

    write_text(tmp_path / "job.yaml", "new")

    assert _mode(tmp_path / "job.yaml") == _mode(tmp_path / "other")


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    file.touch(mode=0o600)
    link.symlink_to(file.name)

    write_text(link, "new")

    assert link.is_symlink()
    assert (file.read_text(), _mode(file)) == ("new", 0o600)


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))

    write_text(file, "new")

    assert file.read_text() == "new"


def test_a_file_that_another_run_left_unfinished_is_not_touched(tmp_path: Path) -> None:
    left = tmp_path / ".job.yaml.unfinished"
    left.write_text("of another run")

    write_text(tmp_path / "job.yaml", "new")

    assert left.read_text() == "of another run"


def test_a_failure_keeps_the_old_file_and_leaves_nothing_beside(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("old")

    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \udc80")

    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_full_device_is_said_in_one_sentence() -> None:
    with pytest.raises(OutsideWorldError, match="cannot write /dev/full: No space left on device"):
        write_text(Path("/dev/full"), "new")


def test_stdout_can_be_written_by_its_name() -> None:
    code = "from pathlib import Path; from spotwright.cli.terminal import write_text as w;"

    done = python(code + "w(Path('/dev/stdout'), 'new')")

    assert (done.returncode, done.stdout, done.stderr) == (0, "new", "")
