import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from spotwright.adapters.terraform.fleet_folder import FleetFolder
from spotwright.domain.errors import (
    BusyError,
    OutsideWorldError,
    SpotwrightError,
    TerraformInterruptedError,
    TerraformRefusedError,
)
from tests.outside_tools import require_tool
from tests.terraform_tool import MODULE


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def initialised(folder: Path) -> subprocess.CompletedProcess[str]:
    """Have Terraform look at modules only: it needs no provider for that."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CLI_CONFIG_FILE"}
    return subprocess.run(
        ["terraform", "get", "-no-color"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("functions", "source"),
    [(False, "./spotwright-module"), (True, "./spotwright-module/modules/serverless")],
)
def test_a_new_folder_becomes_a_root_that_calls_its_copy_of_the_module(
    tmp_path: Path, functions: bool, source: str
) -> None:
    require_tool("terraform")
    folder = FleetFolder(tmp_path / "my fleet")

    notes = folder.prepare(functions=functions)

    assert len(notes) == 1
    assert f'source = "{source}"' in (folder.path / "main.tf").read_text(encoding="utf-8")
    found = initialised(folder.path)
    assert (found.returncode, found.stderr) == (0, "")


def test_the_copy_has_every_file_that_the_module_names_and_no_tests(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    folder.prepare(functions=False)

    copied = set(files(tmp_path / "spotwright-module"))

    tracked = subprocess.run(
        ["git", "ls-files"], cwd=MODULE, capture_output=True, text=True, check=True
    )
    code = {f for f in tracked.stdout.split() if f.endswith((".tf", ".tftpl"))}
    wanted = {f for f in code if not {"tests", "examples"} & set(Path(f).parts)}
    assert wanted <= copied
    assert not any("tests" in Path(f).parts or ".terraform" in f for f in copied)


def test_a_second_time_nothing_is_written_and_nothing_is_told(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    folder.prepare(functions=False)
    before = files(tmp_path)

    assert folder.prepare(functions=False) == []
    assert files(tmp_path) == before


def test_a_root_of_the_users_own_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "own.tf").write_text("# mine\n", encoding="utf-8")

    assert FleetFolder(tmp_path).prepare(functions=False) == []

    assert files(tmp_path) == {"own.tf": b"# mine\n"}


def test_files_of_the_users_own_survive_a_scaffold(tmp_path: Path) -> None:
    (tmp_path / "spotwright-module").mkdir()
    (tmp_path / "spotwright-module/main.tf").write_text("# mine\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("mine\n", encoding="utf-8")

    FleetFolder(tmp_path).prepare(functions=False)

    now = files(tmp_path)
    assert now["spotwright-module/main.tf"] == b"# mine\n"
    assert now[".gitignore"] == b"mine\n"


def test_an_edited_module_is_kept_until_it_is_replaced(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    folder.prepare(functions=False)
    edited = tmp_path / "spotwright-module" / "versions.tf"
    edited.write_text("# mine\n", encoding="utf-8")

    (note,) = folder.prepare(functions=False)
    kept = edited.read_text(encoding="utf-8")
    folder.replace_module()

    assert "--upgrade-module" in note
    assert kept == "# mine\n"
    assert edited.read_bytes() == (MODULE / "versions.tf").read_bytes()
    assert [p.name for p in tmp_path.glob(".module-*")] == []


def test_nobody_else_can_read_the_plan_and_it_is_not_left_behind(tmp_path: Path) -> None:
    private = tmp_path / "fleet" / ".spotwright"
    folder = FleetFolder(tmp_path / "fleet")

    with folder.working() as work:
        work.plan_file.touch()
        assert private in work.plan_file.parents
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert (private / ".gitignore").read_text() == "*\n"
        folder.prepare(functions=False)

    assert not work.plan_file.parent.exists()


def test_a_folder_that_became_no_root_is_gone_unless_something_is_in_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), FleetFolder(tmp_path / "new").working():
        1 / 0  # noqa: B018
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes").touch()
    with FleetFolder(tmp_path / "old").working():
        pass

    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["notes"]


def test_two_commands_do_not_work_in_one_folder_at_once(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path / "fleet")

    with (
        folder.working(),
        pytest.raises(BusyError, match=r"another apply or destroy works in .*/fleet"),
        FleetFolder(tmp_path / "fleet").working(),
    ):
        pass


def test_what_a_killed_command_left_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / ".spotwright" / "work-1" / "plan.tfplan"
    left.parent.mkdir(parents=True)
    left.touch()

    with FleetFolder(tmp_path).working():
        assert not left.exists()


def test_a_part_of_a_root_is_none_and_is_written_anew(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    folder.prepare(functions=False)
    (tmp_path / "variables.tf").unlink()  # as if killed in the middle
    (tmp_path / ".spotwright" / "unfinished").touch()

    assert not folder.is_root
    folder.prepare(functions=False)
    assert folder.is_root
    assert (tmp_path / "variables.tf").exists()


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Have longer ones fail in the middle, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_root_that_could_not_be_written_whole_is_written_anew_the_next_time(
    tmp_path: Path,
) -> None:
    folder = FleetFolder(tmp_path)
    (tmp_path / "spotwright-module").mkdir()

    with pytest.raises(OutsideWorldError), folder.working(), files_of_at_most(500):
        folder.prepare(functions=False)
    assert (tmp_path / "main.tf").stat().st_size == 500
    assert not folder.is_root

    with folder.working():
        folder.prepare(functions=False)
    assert folder.is_root
    assert (tmp_path / "main.tf").stat().st_size > 500


def test_variables_are_taken_and_can_be_put_back(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)

    remove = folder.take_variables("first")
    put_back = folder.take_variables("second")
    assert folder.variables_file.read_text() == "second"
    put_back()
    assert folder.variables_file.read_text() == "first"
    remove()
    assert not folder.variables_file.exists()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "fleet").touch()

    with pytest.raises(OutsideWorldError, match=r"cannot use .*/fleet.*--dir"):
        FleetFolder(tmp_path / "fleet").prepare(functions=False)


def changed(folder: FleetFolder, error: Exception | None = None) -> None:
    with suppress(SpotwrightError), folder.changing():
        assert folder.is_cut_off  # also for whoever comes after a kill
        if error is not None:
            raise error


def test_an_apply_that_did_not_end_well_stays_known_until_one_does(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    with folder.working():
        folder.prepare(functions=False)

        changed(folder)
        assert not folder.is_cut_off
        changed(folder, TerraformRefusedError("locked"))
        assert not folder.is_cut_off  # nothing was done
        changed(folder, TerraformInterruptedError("Ctrl-C"))
        assert folder.is_cut_off
        changed(folder, TerraformRefusedError("locked"))
        assert folder.is_cut_off  # and that of before is still to be seen to
        changed(folder)
        assert not folder.is_cut_off
