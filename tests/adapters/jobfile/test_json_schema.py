"""What `spotwright schema job` prints, held against an independent validator."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from tests.adapters.jobfile.example_jobs import JOB_FILES, SMALL

SPOTWRIGHT = Path(sys.executable).with_name("spotwright")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    printed = subprocess.run([SPOTWRIGHT, "schema", "job"], capture_output=True, check=True)
    loaded: dict[str, Any] = json.loads(printed.stdout)
    return loaded


def _complaints(schema: dict[str, Any], text: str) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(yaml.safe_load(text))
    return [message for error in found for message in _messages(error)]


def _messages(error: ValidationError) -> list[str]:
    """Return what an error says, and what each schema it failed said."""
    return [
        error.message,
        *(message for part in error.context or () for message in _messages(part)),
    ]


def test_the_schema_is_a_draft_2020_12_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$schema"]


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda file: file.name)
def test_every_example_follows_the_schema(schema: dict[str, Any], file: Path) -> None:
    assert _complaints(schema, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("max_nodes: 8", "max_node: 8", "'max_node' was unexpected"),
        ("per_gpu: 64", "per_gpus: 64", "is not valid under any of the given schemas"),
        ("name: small\n", "", "'name' is a required property"),
        ("asp-ps", "gossip", "'gossip' is not one of"),
        ("max_nodes: 8", "max_nodes: [8]", "is not of type 'string', 'number'"),
        ("max_nodes: 8", "pin_pools: {g5.xlarge: 1}", "'g5.xlarge' does not match any of the"),
        ("max_nodes: 8", "exclude_pools: [g5.xlarge]", "'g5.xlarge' does not match"),
        ("max_nodes: 8", "exclude_pools: [{pool: a@b/spot}]", "'until' is a required property"),
    ],
)
def test_a_wrong_file_does_not_follow_the_schema(
    schema: dict[str, Any], old: str, new: str, complaint: str
) -> None:
    assert _complaints(schema, SMALL) == []

    assert any(complaint in told for told in _complaints(schema, SMALL.replace(old, new)))


def test_pools_as_people_write_them_follow_the_schema(schema: dict[str, Any]) -> None:
    text = """\
  exclude_pools: [a@b/spot, {pool: a@c/on-demand, until: "2026-11-16T12:00:00Z"}]
  pin_pools: {a@c/spot: 3}
  max_parameter_servers: 2
"""

    assert _complaints(schema, SMALL + text) == []
