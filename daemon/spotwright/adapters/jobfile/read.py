"""Read a job file: every complaint names the file, the line and what to change."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spotwright.adapters.jobfile import schema
from spotwright.adapters.jobfile.to_domain import job_specs
from spotwright.adapters.jobfile.yaml_tree import YamlTree, parse_yaml
from spotwright.domain.errors import (
    JobFileError,
    PinnedPoolError,
    UnknownNameError,
    nearest_name,
)
from spotwright.domain.job import JobSpec
from spotwright.domain.pins import pin_clashes

_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """The job of a file, or one for each model where it holds several workloads."""

    specs: Mapping[str, JobSpec]
    tree: YamlTree

    @property
    def spec(self) -> JobSpec:
        """The only job of the file."""
        return self.of_model(None)

    def of_model(self, model: str | None) -> JobSpec:
        """Return the job of one model; None where the file has only one."""
        if model is None and len(self.specs) == 1:
            return next(iter(self.specs.values()))
        if model is not None and model in self.specs:
            return self.specs[model]
        models = ", ".join(self.specs)
        problem = f"it has no workload {model!r}" if model else "it has several workloads"
        raise JobFileError(f"{problem}; choose one with --model: {models}", path=self.tree.path)

    def locate(self, error: UnknownNameError | PinnedPoolError) -> JobFileError:
        """Point an unknown name or a pin at the line of the file that has it."""
        if isinstance(error, PinnedPoolError):
            line: int | None = _line_of_pin(error, self.tree)
        else:
            line = self.tree.line_of_text(error.name) or self.tree.line_where(
                lambda text: error.name in re.split("[@/]", text)  # the type or zone of a pool
            )
        return JobFileError(str(error), path=self.tree.path, line=line)


def read_job_file(path: Path) -> LoadedJob:
    """Read and check a job file; names of hardware are checked later, against the catalog."""
    return parse_job(job_text(path), path=str(path))


def parse_job(text: str, *, path: str) -> LoadedJob:
    """Check the text of a job file."""
    _refuse_too_large(len(text), path=path)
    tree = parse_yaml(text, path=path)
    try:
        file = schema.JobFile.model_validate(tree.content)
    except ValidationError as error:
        raise _job_file_error(error, tree) from None
    try:
        loaded = LoadedJob(job_specs(file), tree)
    except ValueError as error:  # a rule of the domain that the schema does not have
        raise JobFileError(str(error), path=path) from error
    _refuse_clashing_pins(loaded)
    return loaded


def _refuse_clashing_pins(loaded: LoadedJob) -> None:
    clashes = [clash for spec in loaded.specs.values() for clash in pin_clashes(spec.limits)]
    if clashes:
        raise _together({(_line_of_pin(c, loaded.tree), str(c)) for c in clashes}, loaded.tree)


def _line_of_pin(error: PinnedPoolError, tree: YamlTree) -> int:
    return tree.line_of(("limits", "pin_pools", error.pool))


def job_text(path: Path) -> str:
    """Return the text of a job file, as far as it can be one."""
    try:
        with path.open("rb") as file:  # a device or a pipe does not tell its size beforehand
            content = file.read(_MAX_BYTES + 1)
        _refuse_too_large(len(content), path=str(path))
        return content.decode("utf-8")
    except FileNotFoundError:
        raise JobFileError("no such file", path=str(path)) from None
    except UnicodeDecodeError:
        raise JobFileError("not a text file (expected UTF-8)", path=str(path)) from None
    except OSError as error:
        raise JobFileError(f"cannot be read: {error.strerror}", path=str(path)) from None


def _refuse_too_large(length: int, *, path: str) -> None:
    if length > _MAX_BYTES:
        raise JobFileError(f"larger than {_MAX_BYTES:,} bytes: not a job file", path=path)


def _job_file_error(error: ValidationError, tree: YamlTree) -> JobFileError:
    return _together([(tree.line_of(e["loc"]), _complaint(e)) for e in error.errors()], tree)


def _together(located: Collection[tuple[int, str]], tree: YamlTree) -> JobFileError:
    """Tell every complaint, each with its line."""
    (line, first), *others = sorted(located)
    rest = "".join(f"\n{tree.path}:{where}: {what}" for where, what in others)
    return JobFileError(first + rest, path=tree.path, line=line)


def _complaint(error: ErrorDetails) -> str:
    *parents, last = error["loc"] or ("job",)
    where = ".".join(str(step) for step in error["loc"] if step != "[key]")
    if error["type"] == "extra_forbidden":
        known = _keys_at(schema.JobFile, parents)
        nearest = nearest_name(str(last), known)
        hint = f"did you mean {nearest!r}?" if nearest else f"known keys: {', '.join(known)}"
        return f"unknown key {where!r}; {hint}"
    if error["type"] == "missing":
        return f"{where!r} is missing; add it"
    if error["type"] == "too_short":
        one = str(last).replace("_", " ").removesuffix("s")
        return f"{where}: name at least one {one}, or leave the key out"
    if error["type"] == "model_type":
        return f"{where}: expected `key: value` lines below it"
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    given = error["input"]
    shown = f", got {given!r}" if isinstance(given, str) and repr(given) not in message else ""
    return f"{where}: {message}{shown}" if where else message + shown


def _keys_at(annotation: Any, location: list[str | int]) -> list[str]:
    """Return the keys that may stand below `location`, following pydantic's error path."""
    models = list(_models(annotation))
    for step in location:
        below = [
            m.model_fields[str(step)].annotation for m in models if str(step) in m.model_fields
        ]
        if below:
            models = [model for note in below for model in _models(note)]
        else:  # the tag of a union, or a key of a free mapping
            models = [m for m in models if _law(m) in (None, step)] or models
    return sorted({key for model in models for key in model.model_fields})


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType, dict, list) or get_args(annotation):
        return [model for argument in get_args(annotation) for model in _models(argument)]
    return []


def _law(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("law")
    return get_args(field.annotation)[0] if field else None
