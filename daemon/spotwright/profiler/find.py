"""From what the user names, a script or MODULE:FUNCTION, to what is profiled."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from spotwright.domain.errors import BadInputError, SpotwrightError
from spotwright.profiler.devices import HOST, telling_out_of_memory
from spotwright.profiler.subject import Subject, checked_subject

_FUNCTION = "build"
_LOADED_AS = "spotwright_profiled"


def find_subject(target: str, *, data: Path | None = None) -> Subject:
    """Run the builder that `target` names; the files below `data` are those of its dataset.

    Raises:
        BadInputError: no such script, module, function or folder, or build() failed.
    """
    files = _files(data)
    builder = _builder(target)
    arguments = _arguments(builder, target, data)
    with telling_failures(f"build() of {target}"), telling_out_of_memory(HOST):
        built = builder(**arguments)
    if data is not None and isinstance(built, dict) and built.get("dataset") is None:
        raise BadInputError(f"{target} has no dataset although --data is given: return one")
    return checked_subject(built, name=target, files=files)


@contextmanager
def telling_failures(what: str) -> Iterator[None]:
    """Tell what went wrong in the user's own code, and where.

    Raises:
        BadInputError: anything but an error of ours.
    """
    try:
        yield
    except SpotwrightError:
        raise
    except Exception as error:  # whatever a user's code may raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        raise BadInputError(f"{what} failed: {type(error).__name__}: {error} ({place})") from error


def _files(data: Path | None) -> tuple[Path, ...]:
    if data is None:
        return ()
    if not data.is_dir():
        found = "is not a folder" if data.exists() else "does not exist"
        raise BadInputError(f"--data: {data} {found}; name the folder that the dataset reads")
    files = tuple(sorted(path for path in data.rglob("*") if path.is_file()))
    if not files:
        raise BadInputError(f"--data: {data} has no files; name the folder that the dataset reads")
    return files


def _builder(target: str) -> Callable[..., Any]:
    module_name, colon, function = target.partition(":")
    if target.endswith(".py") or not colon:
        module, function = _script(Path(target)), _FUNCTION
    else:
        module = _module(module_name)
    builder = getattr(module, function, None)
    if not callable(builder):
        what = "is not a function" if builder is not None else "is missing"
        raise BadInputError(
            f"{target}: {function}() {what}; define it, returning a dict with 'model', 'loss' "
            "and 'batch'"
        )
    return builder  # type: ignore[no-any-return]  # callable, checked above


def _script(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadInputError(f"{path}: no such script; name a .py file, or MODULE:FUNCTION")
    spec = importlib.util.spec_from_file_location(_LOADED_AS, path)
    if spec is None or spec.loader is None:
        raise BadInputError(f"{path} is not a Python script: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_LOADED_AS] = module  # processes that load data look its classes up there
    sys.path.insert(0, str(path.parent.resolve()))  # as `python SCRIPT` does
    with telling_failures(f"{path}"):
        spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m MODULE` does
    with telling_failures(f"importing {name}"):
        return importlib.import_module(name)


def _arguments(builder: Callable[..., Any], target: str, data: Path | None) -> dict[str, Path]:
    parameters = inspect.signature(builder).parameters
    if data is not None:
        if "data" not in parameters:
            raise BadInputError(
                f"the builder of {target} takes no parameter `data`; add it, or drop --data"
            )
        return {"data": data}
    needed = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed == ["data"]:
        raise BadInputError(f"the builder of {target} needs the data: add --data FOLDER")
    if needed:
        raise BadInputError(
            f"the builder of {target} has parameters without a default: {', '.join(needed)}; it is "
            "called with `data` at most"
        )
    return {}
