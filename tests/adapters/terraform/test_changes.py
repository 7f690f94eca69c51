"""What a plan would do and why it failed, as the real Terraform tells it event by event."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spotwright.adapters.terraform.changes import PlanEvents
from spotwright.adapters.terraform.driver import Planned, Terraform
from spotwright.adapters.terraform.program import find_program
from spotwright.domain.errors import TerraformError
from tests.outside_tools import require_tool

ROOT = """
variable "n" {
  type = number
  validation {
    condition     = var.n > 0
    error_message = "n is ${var.n}, which is not enough."
  }
}
resource "terraform_data" "changed" { input = var.n }
resource "terraform_data" "triggered" {
  lifecycle { replace_triggered_by = [terraform_data.changed] }
}
resource "terraform_data" "remade" { triggers_replace = var.n }
resource "terraform_data" "same" {}
resource "terraform_data" "each" {
  for_each = toset([for i in range(var.n) : "key-${i}"])
}
"""


def plan_with(
    folder: Path, n: int, say: Callable[[str], None] = lambda _: None, **changes: str
) -> tuple[Terraform, Planned]:
    require_tool("terraform")
    (folder / "main.tf").write_text(ROOT)
    (folder / "terraform.tfvars.json").write_text(json.dumps({"n": n}))
    environment = {k: v for k, v in os.environ.items() if k != "TF_CLI_CONFIG_FILE"}
    program = find_program(None, environment=environment)
    terraform = Terraform(folder, program, environment=environment | changes, say=say)
    terraform.init()
    return terraform, terraform.plan(folder / "plan")


def test_each_change_is_told_with_its_key_and_why(tmp_path: Path) -> None:
    terraform, first = plan_with(tmp_path, 2)
    assert {change.action for change in first.changes} == {"create"}
    terraform.apply(tmp_path / "plan")

    _, planned = plan_with(tmp_path, 1)

    assert [(c.address, c.key, c.action.value, c.reason) for c in planned.changes] == [
        ("terraform_data.changed", None, "update", ""),
        ('terraform_data.each["key-1"]', "key-1", "delete", ""),
        ("terraform_data.remade", None, "replace", "it cannot be changed in place"),
        ("terraform_data.triggered", None, "replace", "something that it is made of changes"),
    ]


def test_what_a_replacement_left_behind_is_told_from_what_the_configuration_dropped(
    tmp_path: Path,
) -> None:
    terraform, _ = plan_with(tmp_path, 2)
    terraform.apply(tmp_path / "plan")
    state = json.loads((tmp_path / "terraform.tfstate").read_text())
    (same,) = (r for r in state["resources"] if r["name"] == "same")
    same["instances"].append(same["instances"][0] | {"deposed": "0123abcd"})
    (tmp_path / "terraform.tfstate").write_text(json.dumps(state))

    _, planned = plan_with(tmp_path, 1)

    deleted = {c.address: c.is_leftover for c in planned.changes if c.action == "delete"}
    assert deleted == {"terraform_data.same": True, 'terraform_data.each["key-1"]': False}


def test_a_failed_plan_is_quoted_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(TerraformError) as raised:
        plan_with(tmp_path, 0)

    assert str(raised.value).startswith("terraform plan failed:\nError: Invalid value for variable")
    assert "n is 0, which is not enough." in str(raised.value)
    assert "  on terraform.tfvars.json line 1" in str(raised.value)


def test_what_terraform_logs_is_said_and_is_not_taken_for_what_went_wrong(tmp_path: Path) -> None:
    said: list[str] = []

    with pytest.raises(TerraformError) as raised:
        plan_with(tmp_path, 0, said.append, TF_LOG="debug")

    assert "[DEBUG]" not in str(raised.value)
    assert any("CLI command args:" in line and '"plan"' in line for line in said)


def test_lines_that_are_no_events_are_what_went_wrong_where_no_event_tells() -> None:
    events = PlanEvents(say=lambda _: None)

    for line in ("Error: Failed to load", "", '{"no": "type"}', "[1]"):
        events.take(line)

    assert events.errors.startswith("Error: Failed to load")
    assert events.changes == ()


@pytest.mark.parametrize(("action", "gone"), [("update", ()), ("delete", ("aws_a.this",))])
def test_what_differs_from_the_state_is_told_only_if_it_is_gone(
    action: str, gone: tuple[str, ...]
) -> None:
    events = PlanEvents(say=lambda _: None)
    change = {"resource": {"addr": "aws_a.this"}, "action": action}

    events.take(json.dumps({"type": "resource_drift", "change": change}))

    assert (events.gone, events.errors) == (gone, "")


@pytest.mark.parametrize(("action", "words"), [("create", ""), ("replace", "made of changes")])
def test_what_is_made_anew_because_it_is_gone_is_not_said_to_be_replaced(
    action: str, words: str
) -> None:
    events = PlanEvents(say=lambda _: None)
    resource = {"addr": "aws_a.this", "resource_type": "aws_a", "resource_key": None}
    change = {"resource": resource, "action": action, "reason": "replace_triggered_by"}

    events.take(json.dumps({"type": "planned_change", "change": change}))

    assert events.changes[0].action == action
    assert events.changes[0].reason.endswith(words)
    assert bool(events.changes[0].reason) == bool(words)
