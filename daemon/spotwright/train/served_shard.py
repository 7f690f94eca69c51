"""What one server holds: parameters, optimizer, how often it was updated, and by whose pushes."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn, optim

from spotwright.domain.errors import BadInputError
from spotwright.train.layout import (
    FlatBuffer,
    Kind,
    Layout,
    Piece,
    Shard,
    dtype_of,
    named_tensors,
)

# These look at each element by itself: a tensor may be cut, and many may be stepped as one.
_ELEMENTWISE: tuple[type[optim.Optimizer], ...] = (
    optim.SGD, optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam, optim.RMSprop,
    optim.Adagrad, optim.Adadelta, optim.ASGD, optim.Rprop,
)  # fmt: skip


def is_elementwise(optimizer: optim.Optimizer) -> bool:
    """Tell whether an optimizer gives the same result on parts of a tensor as on all of it."""
    return type(optimizer) in _ELEMENTWISE


@dataclass(frozen=True, slots=True)
class _Run:
    """Tensors of one kind, type and parameter group that lie one behind the other."""

    kind: Kind
    dtype: torch.dtype
    shape: tuple[int, ...] | None  # None: flat
    start: int
    stop: int
    group: int | None

    def within(self, buffer: FlatBuffer) -> Tensor:
        """Return it in a buffer, as one tensor."""
        flat = buffer.raw[self.start : self.stop].view(self.dtype)
        return flat if self.shape is None else flat.view(self.shape)


class PushBuffer:
    """Room for one push: gradients, then statistics."""

    def __init__(self, size_bytes: int, runs: Sequence[_Run]) -> None:
        self.flat = FlatBuffer(size_bytes)
        self.gradients = [r.within(self.flat) for r in runs if r.kind is Kind.TRAINED]
        self.statistics = [r.within(self.flat) for r in runs if r.kind is Kind.BUFFER]

    @property
    def memory(self) -> memoryview:
        """All of it, to receive into."""
        return self.flat.bytes


class ServedShard:
    """The parameters of one server. Not locked: whoever calls holds the server's lock."""

    def __init__(
        self, model: nn.Module, optimizer: optim.Optimizer, *, layout: Layout, shard: Shard
    ) -> None:
        """Copy a model's parameters, and have the optimizer step these instead.

        Raises:
            BadInputError: the optimizer cannot be stepped with a gradient alone.
        """
        if isinstance(optimizer, optim.LBFGS):
            raise BadInputError("LBFGS evaluates the loss by itself, which a server cannot do")
        self.layout, self.shard, self.optimizer = layout, shard, optimizer
        self.flat = FlatBuffer(shard.size_bytes)
        self.version = 0
        self.applied: dict[str, int] = {}  # the last sequence number of each worker that counts
        tensors = {name: tensor.detach() for name, tensor, _ in named_tensors(model)}
        pieces = list(layout.pieces(shard))
        for piece in pieces:
            part = tensors[piece.entry.name].flatten()[piece.first : piece.first + piece.count]
            self.flat.view(piece.offset_bytes, piece.entry, piece.count).copy_(part)
        self._runs = _runs(pieces, _groups(model, optimizer), merges=is_elementwise(optimizer))
        self.before_change: Callable[[], None] = lambda: None  # may have it move on
        self._trained = [run for run in self._runs if run.kind is Kind.TRAINED]
        self._parameters = [nn.Parameter(run.within(self.flat)) for run in self._trained]
        self._statistics = [r.within(self.flat) for r in self._runs if r.kind is Kind.BUFFER]
        optimizer.state.clear()
        for index, group in enumerate(optimizer.param_groups):
            group["params"] = [
                parameter
                for parameter, run in zip(self._parameters, self._trained, strict=True)
                if run.group == index
            ]

    def room(self) -> PushBuffer:
        """Return room for a push to this shard."""
        return PushBuffer(self.shard.exchanged_bytes, self._runs)

    def apply(self, push: PushBuffer) -> None:
        """Step the optimizer with the gradients of a push, and take its statistics."""
        self.before_change()
        for parameter, gradient in zip(self._parameters, push.gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        for parameter in self._parameters:
            parameter.grad = None
        for ours, theirs in zip(self._statistics, push.statistics, strict=True):
            ours.copy_(theirs)
        self.version += 1

    def move_to(self, flat: FlatBuffer) -> None:
        """Go on in other memory; what is in the former stays as it is."""
        flat.raw.copy_(self.flat.raw)
        self.flat = flat
        for parameter, run in zip(self._parameters, self._trained, strict=True):
            parameter.data = run.within(flat)
        self._statistics = [r.within(flat) for r in self._runs if r.kind is Kind.BUFFER]

    def copied_state(self) -> Mapping[str, Any]:
        """Return the optimizer's state, in memory of its own."""
        return copy.deepcopy(self.optimizer.state_dict())

    def restore(self, parameters: Tensor, state: dict[str, Any]) -> None:
        """Go back to what was saved."""
        self.flat.raw.copy_(parameters)
        self.optimizer.load_state_dict(state)


def _runs(pieces: Sequence[Piece], groups: Mapping[str, int], *, merges: bool) -> Sequence[_Run]:
    """Return what is stepped as one tensor: neighbours where the optimizer allows, else each."""

    def alike(numbered: tuple[int, Piece]) -> tuple[object, ...]:
        number, piece = numbered
        entry = piece.entry
        return entry.kind, entry.dtype, groups.get(entry.name), None if merges else number

    return [
        _run([piece for _, piece in members], groups, is_flat=merges)
        for _, members in groupby(enumerate(pieces), key=alike)
    ]


def _run(members: Sequence[Piece], groups: Mapping[str, int], *, is_flat: bool) -> _Run:
    first, last = members[0], members[-1]
    entry = first.entry
    return _Run(
        kind=entry.kind,
        dtype=dtype_of(entry.dtype),
        shape=None if is_flat or not first.is_whole else entry.shape,
        start=first.offset_bytes,
        stop=last.offset_bytes + last.count * entry.element_bytes,
        group=groups.get(entry.name),
    )


def _groups(model: nn.Module, optimizer: optim.Optimizer) -> Mapping[str, int]:
    """Return the parameter group of each parameter that the optimizer has."""
    return dict(_grouped(model, optimizer))


def _grouped(model: nn.Module, optimizer: optim.Optimizer) -> Iterator[tuple[str, int]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for index, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if id(parameter) not in names:
                raise BadInputError("the optimizer steps a parameter that is not of this model")
            yield names[id(parameter)], index
