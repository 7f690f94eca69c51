"""What docs/terraform.md says about commands, files and settings is so."""

import re
import shlex
from pathlib import Path

import pytest

from spotwright.adapters.terraform.fleet_folder import FleetFolder
from tests.cli.command import spotwright_here
from tests.terraform_tool import MODULE

TEXT = (Path(__file__).parents[2] / "docs" / "terraform.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:\$ | *)spotwright ([a-z].*?)(?: +#.*)?$", TEXT, re.MULTILINE)
NESTED = ("certs", "catalog")


def part(heading: str) -> str:
    return re.split(r"^## ", TEXT.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_of_the_page_has_the_flags_that_it_is_given(command: str) -> None:
    words = shlex.split(command)
    verbs = words[:2] if words[0] in NESTED else words[:1]

    told = spotwright_here(*verbs, "--help")

    assert told.returncode == 0
    flags = [word for word in words if word.startswith("--")]
    assert [flag for flag in flags if flag not in told.stdout] == []


def test_the_table_of_the_fleet_folder_has_every_file_that_is_made(tmp_path: Path) -> None:
    FleetFolder(tmp_path / "fleet").prepare(functions=False)

    made = {path.name for path in (tmp_path / "fleet").iterdir()}
    assert len(made) > 5
    assert [name for name in made if f"`{name}" not in part("The fleet folder")] == []


def test_the_settings_are_those_of_the_module() -> None:
    rows = re.findall(r"^\| (`.+?) \|", part("Settings"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}

    assert len(named) > 6
    assert named <= set(
        re.findall(r'^variable "(\w+)"', (MODULE / "settings.tf").read_text(), re.M)
    )
