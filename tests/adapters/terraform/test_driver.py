import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.program import find_program
from spotwright.domain.errors import (
    TerraformError,
    TerraformInterruptedError,
    TerraformRefusedError,
)
from tests.outside_tools import require_tool

ROOT = """
variable "value" { default = "old" }
resource "terraform_data" "quick" { input = var.value }
resource "terraform_data" "slow" {
  input      = var.value
  depends_on = [terraform_data.quick]
  provisioner "local-exec" { command = "echo begun; until [ -e fast ]; do sleep 0.1; done" }
}
output "value" { value = terraform_data.quick.output }
"""
# Applies a saved plan as the command line does.
APPLY = """
import os, sys
from pathlib import Path
from spotwright.adapters.terraform.driver import Terraform
from spotwright.adapters.terraform.program import find_program
from spotwright.domain.errors import TerraformError
terraform = Terraform(Path(sys.argv[1]), find_program(None, environment=os.environ),
                      environment=os.environ, say=lambda line: print(line, flush=True))
try:
    terraform.apply(Path(sys.argv[1]) / "plan")
except TerraformError as error:
    sys.exit(str(error))
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("terraform")
    monkeypatch.delenv("TF_CLI_CONFIG_FILE", raising=False)
    monkeypatch.setenv("CHECKPOINT_DISABLE", "1")


def root(folder: Path, *, fast: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.tf").write_text(ROOT, encoding="utf-8")
    if fast:
        (folder / "fast").touch()
    return folder


def terraform_in(folder: Path, *, lines: list[str] | None = None) -> Terraform:
    program = find_program(None, environment=os.environ)
    said = [] if lines is None else lines
    terraform = Terraform(folder, program, environment=os.environ, say=said.append)
    terraform.init()
    return terraform


@contextmanager
def slow_apply(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Apply the saved plan in a process of its own, and go on once it is half-way."""
    command = [sys.executable, "-c", APPLY, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert any(line.rstrip().endswith("(local-exec): begun") for line in process.stdout)
        try:
            yield process
        finally:
            (folder / "fast").touch()  # ends it, should a test have left it running


def made(folder: Path) -> list[str]:
    state = json.loads((folder / "terraform.tfstate").read_text(encoding="utf-8"))
    return [r["name"] for r in state["resources"] if "status" not in r["instances"][0]]


def value(folder: Path) -> str:
    state = json.loads((folder / "terraform.tfstate").read_text(encoding="utf-8"))
    return str(state["outputs"]["value"]["value"])


@pytest.mark.parametrize("name", ["plain", "two words", 'it\'s "quoted"', "-destroy", "${a} $b"])
def test_a_folder_of_any_name_is_planned_applied_and_destroyed(tmp_path: Path, name: str) -> None:
    folder = root(tmp_path / name)
    terraform, plan = terraform_in(folder), folder / "plan"
    assert terraform.resources() == ()

    assert terraform.plan(plan).is_changed
    terraform.apply(plan)
    assert terraform.resources() == ("terraform_data.quick", "terraform_data.slow")

    assert value(folder) == "old"
    assert not terraform.plan(plan).is_changed
    assert terraform.plan(plan, destroy=True).is_changed
    terraform.apply(plan)
    assert made(folder) == []
    assert terraform.resources() == ()


def test_what_was_planned_is_applied_though_variables_change_afterwards(tmp_path: Path) -> None:
    folder = root(tmp_path)
    terraform = terraform_in(folder)
    terraform.plan(folder / "plan")
    (folder / "a.auto.tfvars").write_text('value = "new"\n', encoding="utf-8")

    terraform.apply(folder / "plan")

    assert value(folder) == "old"


def test_variables_given_to_a_plan_come_before_those_of_the_folder(tmp_path: Path) -> None:
    folder = root(tmp_path / "fleet")
    (folder / "a.auto.tfvars").write_text('value = "folder"\n', encoding="utf-8")
    (tmp_path / "b.tfvars").write_text('value = "given"\n', encoding="utf-8")
    terraform = terraform_in(folder)

    terraform.plan(folder / "plan", variables=tmp_path / "b.tfvars")
    terraform.apply(folder / "plan")

    assert value(folder) == "given"


def test_a_plan_from_before_another_apply_is_refused(tmp_path: Path) -> None:
    folder = root(tmp_path)
    terraform = terraform_in(folder)
    terraform.plan(folder / "first")
    terraform.plan(folder / "second")
    terraform.apply(folder / "first")

    with pytest.raises(TerraformRefusedError, match="the state changed after this plan was made"):
        terraform.apply(folder / "second")


def test_a_lock_names_who_holds_it_and_how_to_break_it(tmp_path: Path) -> None:
    folder = root(tmp_path, fast=False)
    terraform = terraform_in(folder)
    terraform.plan(folder / "plan")

    with slow_apply(folder) as process:
        with pytest.raises(TerraformError, match=r"has locked the state since 2.*\(apply\).*force"):
            terraform.plan(folder / "other")
        process.send_signal(signal.SIGINT)


def test_an_interrupted_apply_keeps_what_it_made_and_the_next_one_goes_on(tmp_path: Path) -> None:
    folder = root(tmp_path, fast=False)
    terraform_in(folder).plan(folder / "plan")

    with slow_apply(folder) as process:
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()  # it was stopped: by itself it would never end

    assert process.returncode == 1
    assert "interrupted: terraform apply has stopped" in error
    assert made(folder) == ["quick"]
    again = terraform_in(folder)
    assert again.plan(folder / "plan").is_changed  # also: the lock is free
    again.apply(folder / "plan")
    assert made(folder) == ["quick", "slow"]


# Ends as the last word of the command says, having been asked to stop by its parent's Ctrl-C.
STUB = """#!/bin/sh
case $1 in
version) echo '{"terraform_version": "1.11.4"}'; exit 0;;
esac
trap '' INT
kill -INT $PPID
sleep 0.3
echo '{"type": "log", "@message": "thinking"}'
"""


def stub_in(folder: Path, *, end: str) -> Terraform:
    """Return Terraform whose every command interrupts this process, and then ends so."""
    path = folder / "terraform"
    path.write_text(f"{STUB}{end}\n", encoding="utf-8")
    path.chmod(0o755)
    program = find_program(str(path), environment=os.environ)
    return Terraform(folder, program, environment=os.environ, say=lambda _: None)


def test_an_apply_that_ended_well_is_done_though_it_was_asked_to_stop(tmp_path: Path) -> None:
    stub_in(tmp_path, end="exit 0").apply(tmp_path / "plan")

    with pytest.raises(TerraformInterruptedError):
        stub_in(tmp_path, end="exit 1").apply(tmp_path / "plan")


@pytest.mark.parametrize("end", ["exit 0", "exit 2"])
def test_a_plan_that_was_asked_to_stop_is_not_gone_on_from(tmp_path: Path, end: str) -> None:
    with pytest.raises(TerraformInterruptedError, match="nothing was rented"):
        stub_in(tmp_path, end=end).plan(tmp_path / "plan")


def test_a_plan_that_is_killed_tells_the_signal_and_its_last_words(tmp_path: Path) -> None:
    terraform = stub_in(tmp_path, end="kill -9 $$")
    path = tmp_path / "terraform"
    path.write_text(path.read_text().replace("kill -INT $PPID", ""))

    with pytest.raises(TerraformError) as raised:
        terraform.plan(tmp_path / "plan")

    assert str(raised.value) == ("terraform plan was ended by SIGKILL; its last words:\nthinking")


def test_the_command_that_shows_a_plan_works_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root(tmp_path / "a fleet")
    terraform = terraform_in(folder)
    terraform.plan(folder / "plan")
    monkeypatch.chdir(tmp_path)

    shown = subprocess.run(
        terraform.show_command(folder / "plan"),
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert shown.returncode == 0, shown.stderr
    assert "terraform_data.quick" in shown.stdout


def test_a_plan_that_is_only_looked_at_needs_no_lock_and_takes_none(tmp_path: Path) -> None:
    folder = root(tmp_path, fast=False)
    terraform = terraform_in(folder)
    terraform.plan(folder / "plan")

    with slow_apply(folder) as process:
        assert terraform.plan(folder / "other", lock=False).is_changed
        process.send_signal(signal.SIGINT)


def test_terraforms_own_error_is_quoted_whole(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('output "a" {\n  value = nothing.here\n}\n', encoding="utf-8")

    with pytest.raises(TerraformError, match=r"(?s)plan failed:\nError: .* on main\.tf line 2"):
        terraform_in(tmp_path).plan(tmp_path / "plan")


def test_init_is_passed_over_until_the_configuration_changes(tmp_path: Path) -> None:
    (tmp_path / "child").mkdir()
    (tmp_path / "child" / "main.tf").write_text("", encoding="utf-8")
    (tmp_path / "main.tf").write_text('module "a" {\n  source = "./child"\n}\n', encoding="utf-8")
    first: list[str] = []
    second: list[str] = []
    third: list[str] = []

    terraform_in(tmp_path, lines=first)
    terraform_in(tmp_path, lines=second)
    (tmp_path / "b.tf").write_text('module "b" {\n  source = "./child"\n}\n', encoding="utf-8")
    terraform_in(tmp_path, lines=third)

    assert (bool(first), bool(second), bool(third)) == (True, False, True)


def test_a_damaged_state_is_told_by_every_command_with_the_way_out(tmp_path: Path) -> None:
    terraform = terraform_in(root(tmp_path))
    (tmp_path / "terraform.tfstate").write_text("{", encoding="utf-8")
    way_out = "the state is damaged: .*terraform.tfstate.backup"

    with pytest.raises(TerraformError, match=f"^terraform plan: {way_out}"):
        terraform.plan(tmp_path / "plan")
    with pytest.raises(TerraformError, match=f"^terraform state list: {way_out}"):
        terraform.resources()
    with pytest.raises(TerraformError, match=f"^terraform state pull: {way_out}"):
        terraform.state()
    with pytest.raises(TerraformError, match=f"^terraform init: {way_out}"):
        terraform_in(tmp_path)


def test_a_folder_without_a_state_is_nothing_to_speak_of(tmp_path: Path) -> None:
    lines: list[str] = []
    terraform = terraform_in(root(tmp_path), lines=lines)
    lines.clear()

    assert terraform.resources() == ()

    assert lines == []
