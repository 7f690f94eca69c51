"""What is profiled: a model, its loss, a maker of batches, and the data it is trained on.

`build()` of a training script returns a mapping, so that the script need not import Spotwright:

    model      torch.nn.Module
    loss       (model, batch) -> tensor with one element
    batch      (sample count) -> a synthetic batch: tensors, or tuples, lists and mappings of them
    optimizer  torch.optim.Optimizer of the model; left out: Adam
    dataset    torch dataset with a length, whose batches `loss` takes; left out: no input stalls
    collate    how samples of the dataset become a batch; left out: torch's own way
"""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from spotwright.domain.errors import BadInputError, nearest_name

_REQUIRED = ("model", "loss", "batch")
_KEYS = (*_REQUIRED, "optimizer", "dataset", "collate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One training job, small enough to be run here."""

    name: str  # of the script or module
    model: nn.Module
    loss: Callable[[nn.Module, Any], Tensor]
    batch: Callable[[int], Any]
    optimizer: Optimizer
    dataset: Any = None  # torch's own type of datasets promises no length
    collate: Callable[[list[Any]], Any] | None = None
    files: tuple[Path, ...] = ()  # that the dataset is read from


def checked_subject(built: object, *, name: str, files: tuple[Path, ...] = ()) -> Subject:
    """Check what build() returned.

    Raises:
        BadInputError: a key is missing, unknown, or holds something else than it should.
    """
    if not isinstance(built, Mapping):
        raise BadInputError(
            f"build() of {name} returned {_kind(built)}; return a dict with {_listed(_REQUIRED)}"
        )
    _check_keys(built, name)
    model = built["model"]
    _require(isinstance(model, nn.Module), name, "model", built, "a torch.nn.Module")
    for key in ("loss", "batch", "collate"):
        _require(built.get(key) is None or callable(built[key]), name, key, built, "a function")
    if not any(p.requires_grad for p in model.parameters()):
        raise BadInputError(f"the model of {name} has no parameters to train")
    return Subject(
        name=name,
        model=model,
        loss=built["loss"],
        batch=built["batch"],
        optimizer=_optimizer(built, name, model),
        dataset=_dataset(built, name),
        collate=built.get("collate"),
        files=files,
    )


def _check_keys(built: Mapping[object, object], name: str) -> None:
    missing = [key for key in _REQUIRED if built.get(key) is None]
    if missing:
        raise BadInputError(f"what build() of {name} returned has no {_listed(missing)}; add it")
    for key in built:
        if key not in _KEYS:
            nearest = nearest_name(str(key), _KEYS)
            hint = f"did you mean {nearest!r}?" if nearest else f"known are {_listed(_KEYS)}"
            raise BadInputError(f"build() of {name} returned an unknown key {key!r}; {hint}")


def _optimizer(built: Mapping[str, Any], name: str, model: nn.Module) -> Optimizer:
    given = built.get("optimizer")
    if given is None:
        return torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
    _require(isinstance(given, Optimizer), name, "optimizer", built, "a torch.optim.Optimizer")
    own = {id(parameter) for parameter in model.parameters()}
    if any(id(p) not in own for group in given.param_groups for p in group["params"]):
        raise BadInputError(
            f"the optimizer of {name} holds parameters of another model; make it from "
            "model.parameters()"
        )
    return given  # type: ignore[no-any-return]  # checked above


def _dataset(built: Mapping[str, Any], name: str) -> Any:
    dataset = built.get("dataset")
    if dataset is None:
        return None
    fits = hasattr(dataset, "__getitem__") and isinstance(dataset, Sized)
    _require(fits, name, "dataset", built, "a dataset with __getitem__ and __len__")
    if not len(dataset):
        raise BadInputError(f"the dataset of {name} is empty")
    return dataset


def _require(holds: bool, name: str, key: str, built: Mapping[str, Any], wanted: str) -> None:
    if not holds:
        raise BadInputError(f"{key} of {name} must be {wanted}, build() gave {_kind(built[key])}")


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(repr(name) for name in names)
