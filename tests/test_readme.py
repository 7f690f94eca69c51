"""The README shows what the commands really print."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import spotwright

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SHOWN = re.findall(r"```console\n\$ spotwright (.*)\n((?:.*\n)*?)```", README)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_readme_shows_what_a_command_prints(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words, _, head = command.partition(" | head -")

    printed = [line.rstrip() for line in spotwright(*shlex.split(words)).stdout.splitlines()]

    assert printed[: int(head) if head else None] == output.splitlines()


def test_the_readme_shows_an_example_as_it_is() -> None:
    assert (ROOT / "examples" / "resnet50.yaml").read_text().rstrip() in README


def test_every_file_the_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_job_file_of_the_docs_can_be_predicted(tmp_path: Path) -> None:
    shown = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "files.md").read_text(), re.DOTALL)
    job = tmp_path / "job.yaml"
    job.write_text(shown[0])

    assert spotwright("predict", job, "--fleet", "T4*2").returncode == 0
