"""A worker's model in two runs of bytes: its parameters, and their gradients.

Tensors of a model on the CPU become views of these runs: what arrives from a server is in the
model, and what the backward pass adds up is where it is sent from. Tensors elsewhere are copied.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from spotwright.train.layout import FlatBuffer, Kind, Layout, Shard, dtype_of, named_tensors

_Pairs = Sequence[tuple[Tensor, Tensor]]  # a tensor of the model, and its view of a run


class ModelMemory:
    """Parameters to receive and gradients to send, of one model."""

    def __init__(self, model: nn.Module) -> None:
        self.layout = Layout.of(model)
        self._parameters = FlatBuffer(self.layout.size_bytes)
        self._gradients = FlatBuffer(self.layout.exchanged_bytes)
        tensors = {name: tensor for name, tensor, _ in named_tensors(model)}
        self._received = self._pairs(self._parameters, tensors, *Kind)
        self._trained = self._pairs(self._gradients, tensors, Kind.TRAINED)
        self._statistics = self._pairs(self._gradients, tensors, Kind.BUFFER)
        self._checked = list(self._runs())
        for tensor, view in self._received:
            view.copy_(tensor.detach())
            if _is_shared(tensor):
                tensor.data = view
        self._empty_gradients()

    def parameters(self, shard: Shard, *, with_frozen: bool) -> list[memoryview]:
        """Return where a shard's parameters are received."""
        memory = self._parameters.bytes
        exchanged = memory[shard.start : shard.stop]
        return [exchanged, memory[shard.frozen_start : shard.frozen_stop]][: 1 + with_frozen]

    def gradients(self, shard: Shard) -> list[memoryview]:
        """Return what is pushed to a shard."""
        return [self._gradients.bytes[shard.start : shard.stop]]

    def collect(self) -> bool:
        """Have gradients and statistics where they are sent from; return whether all are finite."""
        for tensor, view in self._statistics:
            view.copy_(tensor)
        for tensor, view in self._trained:
            gradient = tensor.grad
            if gradient is None:
                view.zero_()
            elif gradient is not view:
                view.copy_(gradient)
        return all(_is_finite(run) for run in self._checked)

    def spread(self) -> None:
        """Have what was received in the model, and its gradients at zero."""
        for tensor, view in self._received:
            if tensor.data_ptr() != view.data_ptr():
                with torch.no_grad():
                    tensor.copy_(view)
        self._empty_gradients()

    def _empty_gradients(self) -> None:
        self._gradients.raw.zero_()
        for tensor, view in self._trained:
            if not _is_shared(tensor):
                tensor.grad = None
            elif tensor.grad is not view:
                tensor.grad = view

    def _pairs(self, flat: FlatBuffer, tensors: dict[str, Tensor], *kinds: Kind) -> _Pairs:
        return [
            (tensors[entry.name], flat.view(offset, entry))
            for entry, offset in zip(self.layout.entries, self.layout.offsets, strict=True)
            if entry.kind in kinds
        ]

    def _runs(self) -> Iterator[Tensor]:
        """Yield the gradients of each type as one tensor; what lies between them is zero."""
        trained = [
            (entry, offset)
            for entry, offset in zip(self.layout.entries, self.layout.offsets, strict=True)
            if entry.kind is Kind.TRAINED
        ]
        for dtype, members in groupby(trained, key=lambda member: member[0].dtype):
            run = list(members)
            (_, start), (last, offset) = run[0], run[-1]
            yield self._gradients.raw[start : offset + last.size_bytes].view(dtype_of(dtype))


def _is_finite(run: Tensor) -> bool:
    """Tell whether no element is NaN or infinite: one pass, unless the sum leaves its type."""
    return math.isfinite(float(run.sum().abs())) or bool(torch.isfinite(run).all())


def _is_shared(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"
