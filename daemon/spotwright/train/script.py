"""What is trained, as a script says it.

    def build():
        return model, optimizer, loss, data

`loss` takes the model's outputs and the targets. `data` is a dataset with a length, of which each
worker draws batches in an order of its own; or a function of a worker's name and the batch size
that returns an iterable of batches; or such an iterable, begun anew when it ends. A batch is a pair
of inputs and targets.
"""

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Dataset

from spotwright.domain.errors import BadInputError, BatchError
from spotwright.profiler.devices import HOST, telling_out_of_memory
from spotwright.profiler.find import telling_failures

_BUILD = "build"


class Task(NamedTuple):
    """What `build` of a script returns."""

    model: nn.Module
    optimizer: optim.Optimizer
    loss: Callable[[Any, Any], Tensor]
    data: Any


def load_task(script: str) -> Task:
    """Build what FILE.py, FILE.py:FUNCTION or MODULE:FUNCTION describes.

    Raises:
        BadInputError: there is no such file, module or function, it fails, or returns something
            else.
        OutsideWorldError: this host has no memory for the model.
    """
    where, _, function = script.rpartition(":") if ":" in script else (script, "", _BUILD)
    build = getattr(_module(where), function, None)
    if not callable(build):
        raise BadInputError(
            f"{where} has no function {function}; define `def {function}():` that returns a model, "
            "an optimizer, a loss function and data"
        )
    with telling_failures(f"{function}() of {where}"), telling_out_of_memory(HOST):
        made = build()
    if not isinstance(made, tuple) or len(made) != len(Task._fields):
        raise BadInputError(
            f"{function} of {where} returned {type(made).__name__}, not four values: a model, an "
            "optimizer, a loss function and data"
        )
    task = Task(*made)
    if not isinstance(task.model, nn.Module) or not isinstance(task.optimizer, optim.Optimizer):
        raise BadInputError(
            f"{function} of {where} returned a {type(task.model).__name__} and a "
            f"{type(task.optimizer).__name__} where a torch.nn.Module and an optimizer are needed"
        )
    return task


def batches(data: Any, *, worker: str, batch: int, start: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield batches for as long as a worker trains.

    Args:
        data: of a task.
        worker: whose order it is.
        batch: samples of each.
        start: how many to leave out, trained on before; of a dataset they are not even read.

    Raises:
        BatchError: data is empty, or its items are no pairs of inputs and targets.
    """
    if batch < 1:
        raise BatchError(f"worker {worker}: a batch of {batch} samples; --batch counts from 1")
    if _is_drawn(data):
        yield from _pairs(_drawn_passes(data, worker, batch=batch, start=start), worker)
    else:
        passes = (_one_pass(data, worker=worker, batch=batch) for _ in count())
        yield from islice(_pairs(passes, worker), start, None)


def sample_count(inputs: Any) -> int:
    """Return how many samples a batch has."""
    if isinstance(inputs, Tensor):
        return int(inputs.shape[0]) if inputs.dim() else 1
    if isinstance(inputs, dict):
        return sample_count(next(iter(inputs.values()), ()))
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], Tensor):
        return sample_count(inputs[0])
    return len(inputs)


def _is_drawn(data: Any) -> bool:
    return isinstance(data, Dataset) and hasattr(data, "__len__")


def _drawn_passes(dataset: Any, worker: str, *, batch: int, start: int) -> Iterator[Iterable[Any]]:
    """Yield passes over a dataset, each in an order of its own; none has been read yet."""
    dice = torch.Generator().manual_seed(zlib.crc32(worker.encode()))
    of_loader = torch.Generator()  # it draws for its processes, and not from what others draw from
    passed, first = divmod(start, max(1, -(-len(dataset) // batch)))
    for number in count():
        order = torch.randperm(len(dataset), generator=dice).tolist()
        if number >= passed:
            drawn = [order[i : i + batch] for i in range(first * batch, len(order), batch)]
            first = 0
            yield DataLoader(dataset, batch_sampler=drawn, generator=of_loader)


def _one_pass(data: Any, *, worker: str, batch: int) -> Iterable[Any]:
    if isinstance(data, DataLoader):
        return data
    if callable(data):
        made: Iterable[Any] = data(worker, batch)
        return made
    if isinstance(data, Iterable):
        return data
    raise BadInputError(
        f"data is a {type(data).__name__}; return a dataset, a function of (worker, batch), or an "
        "iterable of batches"
    )


def _pairs(passes: Iterable[Iterable[Any]], worker: str) -> Iterator[tuple[Any, Any]]:
    for one_pass in passes:
        seen = 0
        for item in one_pass:
            seen += 1
            yield _pair(item, worker)
        if not seen:
            raise BatchError(f"worker {worker}: the data has no batch at all")


def _pair(item: Any, worker: str) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise BatchError(
            f"worker {worker}: a batch is a {type(item).__name__}, not a pair of inputs and targets"
        )
    return item[0], item[1]


def _module(where: str) -> Any:
    path = Path(where)
    if path.suffix != ".py":
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            if error.name and not where.startswith(error.name):
                raise
            raise BadInputError(
                f"there is no module {where}; name FILE.py or MODULE:FUNCTION"
            ) from error
    if not path.is_file():
        raise BadInputError(f"there is no file {where}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))  # what stands beside the script can be imported
    with telling_failures(where):
        spec.loader.exec_module(module)
    return module
