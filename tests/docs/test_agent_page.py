"""docs/agent.md says what the program does."""

import re
import subprocess
import sys
from pathlib import Path

from spotwright_agent.settings import SETTINGS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "agent.md").read_text(encoding="utf-8")
AGENT = Path(sys.executable).with_name("spotwright-agent")


def _settings_table() -> str:
    return TEXT.partition("| in `agent.toml` |")[2].partition("\n\n")[0]


def test_every_setting_is_in_the_table_and_nothing_else() -> None:
    first_columns = [line.split("|")[1] for line in _settings_table().splitlines()[2:]]
    told = re.findall(r"`([a-z_]+)`", " ".join(first_columns))

    assert sorted(told) == sorted(setting.name for setting in SETTINGS)


def test_the_defaults_of_the_table_are_those_of_the_program() -> None:
    rows = [line.split("|")[1:3] for line in _settings_table().splitlines()[2:]]
    told = {
        name.strip(" `"): value.strip(" `")
        for names, values in rows
        for name, value in zip(names.split(","), values.split(","), strict=False)
    }
    expected = {setting.name: setting.default for setting in SETTINGS if setting.default}

    assert {name: str(told[name]) for name in expected} == {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in expected.items()
    }


def test_every_file_that_the_text_links_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)

    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_every_heading_that_the_text_links_exists() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("## ")
    }

    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) == headings


def test_every_flag_of_install_and_check_is_one() -> None:
    for command, flags in (
        ("install", ["--daemon", "--agent-id", "--job-id", "--tls-from", "--force", "--dry-run",
                     "--no-start", "--root", "--signal-training"]),
        ("check", ["--json", "--hardware", "--config"]),
    ):  # fmt: skip
        told = subprocess.check_output([AGENT, command, "--help"], text=True)
        assert [flag for flag in flags if flag not in told or flag not in TEXT] == []
