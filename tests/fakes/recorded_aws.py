"""AWS as recorded replies: boto3 sessions that answer some calls without a network."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.session
from boto3.session import Session
from botocore.loaders import create_loader
from botocore.model import OperationModel
from botocore.validate import validate_parameters

_REPLIES = Path(__file__).parents[1] / "data" / "aws"
_SERVICE_MODELS = create_loader()  # shared: reading EC2's takes a third of a second


def reply(name: str) -> dict[str, Any]:
    """Return one recorded reply, with times as boto3 gives them."""
    return dict(json.loads((_REPLIES / f"{name}.json").read_text(), object_hook=_with_time))


def _with_time(record: dict[str, Any]) -> dict[str, Any]:
    if "Timestamp" in record:
        record["Timestamp"] = datetime.fromisoformat(record["Timestamp"])
    return record


def all_replies() -> dict[str, dict[str, Any]]:
    """Return the recorded reply of every call the feed makes, by operation."""
    by_stem = {path.stem: reply(path.stem) for path in _REPLIES.glob("*.json")}
    return {stem.title().replace("_", ""): found for stem, found in by_stem.items()}


@dataclass(frozen=True)
class Refusal:
    """An error that AWS answers with."""

    code: str
    message: str = "refused"


@dataclass
class RecordedAws:
    """Answers the recorded operations; others go to the endpoint that boto3 would ask."""

    replies: Mapping[str, dict[str, Any] | Refusal]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def open_session(self) -> Session:
        core = botocore.session.get_session()
        core.register_component("data_loader", _SERVICE_MODELS)
        core.register("provide-client-params", partial(_remember, self))
        core.register("before-call", partial(_answer, self))
        return Session(botocore_session=core)


def _remember(aws: RecordedAws, *, model: OperationModel, params: dict[str, Any], **_: Any) -> None:
    aws.asked.append((model.name, params))


def _answer(aws: RecordedAws, *, model: OperationModel, **_: Any) -> Any:
    found = aws.replies.get(model.name)
    if found is None:
        return None
    if isinstance(found, Refusal):
        return SimpleNamespace(status_code=400), {
            "Error": {"Code": found.code, "Message": found.message},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }
    assert model.output_shape is not None
    validate_parameters(found, model.output_shape)  # a reply that AWS could not give is a bug here
    return SimpleNamespace(status_code=200), found
