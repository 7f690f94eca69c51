"""A worker's model in two runs of bytes: its parameters, and their gradients.

Tensors of a model on the CPU become views of these runs: what arrives from a server is in the
model, and what the backward pass adds up is where it is sent from. Tensors elsewhere are copied.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from spotwright.train.layout import Entry, FlatBuffer, Kind, Layout, Shard, named_tensors


class ModelMemory:
    """Parameters to receive and gradients to send, of one model."""

    def __init__(self, model: nn.Module) -> None:
        self.layout = Layout.of(model)
        self._parameters = FlatBuffer(self.layout.size_bytes)
        self._gradients = FlatBuffer(self.layout.exchanged_bytes)
        self._tensors = {name: tensor for name, tensor, _ in named_tensors(model)}
        for entry, tensor, view in self._views(self._parameters):
            view.copy_(tensor.detach())
            if _is_shared(tensor):
                tensor.data = view
            if entry.kind is Kind.TRAINED and _is_shared(tensor):
                tensor.grad = None
        for entry, tensor, view in self._views(self._gradients):
            if entry.kind is Kind.TRAINED and _is_shared(tensor):
                tensor.grad = view

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
        total = 0.0
        for entry, tensor, view in self._views(self._gradients):
            if entry.kind is Kind.BUFFER:
                view.copy_(tensor)
                continue
            if tensor.grad is None:
                view.zero_()
            elif tensor.grad.data_ptr() != view.data_ptr():
                view.copy_(tensor.grad)
            total += float(view.sum().abs())
        return math.isfinite(total)

    def spread(self) -> None:
        """Have what was received in the model, and its gradients at zero."""
        for _, tensor, view in self._views(self._parameters):
            if tensor.data_ptr() != view.data_ptr():
                with torch.no_grad():
                    tensor.copy_(view)
        self._gradients.raw.zero_()
        for entry, tensor, view in self._views(self._gradients):
            if entry.kind is Kind.TRAINED:
                tensor.grad = view if _is_shared(tensor) else None

    def _views(self, flat: FlatBuffer) -> Iterator[tuple[Entry, Tensor, Tensor]]:
        for entry, offset in zip(self.layout.entries, self.layout.offsets, strict=True):
            if offset + entry.size_bytes <= flat.size_bytes:
                yield entry, self._tensors[entry.name], flat.view(offset, entry)


def _is_shared(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"
