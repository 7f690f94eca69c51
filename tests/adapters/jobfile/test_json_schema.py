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
    ],
)
def test_a_wrong_file_does_not_follow_the_schema(
    schema: dict[str, Any], old: str, new: str, complaint: str
) -> None:
    assert _complaints(schema, SMALL) == []

    assert any(complaint in told for told in _complaints(schema, SMALL.replace(old, new)))
