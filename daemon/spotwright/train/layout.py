"""A model as one run of bytes, and the part of it that each server holds.

    [ trained parameters | buffers | frozen parameters ]
      <------- exchanged ------>     <- told once, at the start

Every tensor begins at a multiple of 16 bytes. A server holds a range of what is exchanged, so a
worker sends and receives each shard as it lies in memory, without gathering it.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor, nn

from spotwright.domain.errors import BadInputError, PeerRefusedError

ALIGNMENT_BYTES = 16  # a multiple of every element's size, so that a cut falls between elements
_SHOWN_DIFFERENCES = 5
_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}


class Kind(StrEnum):
    """What a tensor is to training."""

    TRAINED = "trained"  # its gradient is pushed
    BUFFER = "buffer"  # pushed as it is: the statistics of a normalisation
    FROZEN = "frozen"  # never changes; a worker that joins is told it


_ORDER = (Kind.TRAINED, Kind.BUFFER, Kind.FROZEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tensor of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: Kind

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return dtype_of(self.dtype).itemsize

    @property
    def size_bytes(self) -> int:
        """Bytes without what follows to the next tensor."""
        return math.prod(self.shape) * self.element_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What one server holds: a range of what is exchanged, and one of what is frozen."""

    start: int
    stop: int
    frozen_start: int
    frozen_stop: int

    @property
    def exchanged_bytes(self) -> int:
        """Bytes of a push, and of a pull."""
        return self.stop - self.start

    @property
    def size_bytes(self) -> int:
        """Bytes of what the server holds."""
        return self.exchanged_bytes + self.frozen_stop - self.frozen_start


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The part of a tensor that a shard has."""

    entry: Entry
    first: int  # element of the tensor
    count: int
    offset_bytes: int  # in the shard

    @property
    def is_whole(self) -> bool:
        """Whether the tensor is not cut."""
        return self.count == math.prod(self.entry.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """The tensors of a model, in order, and where each begins."""

    entries: tuple[Entry, ...]
    offsets: tuple[int, ...]
    exchanged_bytes: int
    size_bytes: int

    @classmethod
    def of(cls, model: nn.Module) -> Self:
        """Return how a model lies in memory.

        Raises:
            BadInputError: it has nothing to train, or a tensor that cannot be sent.
        """
        entries = sorted(
            (
                Entry(name=name, shape=tuple(t.shape), dtype=dtype_name(t.dtype), kind=kind)
                for name, t, kind in named_tensors(model)
            ),
            key=lambda entry: _ORDER.index(entry.kind),
        )
        if not any(entry.kind is Kind.TRAINED for entry in entries):
            raise BadInputError(
                f"{type(model).__name__} has no parameter with requires_grad: nothing to train"
            )
        return cls.from_entries(entries)

    @classmethod
    def from_entries(cls, entries: Sequence[Entry]) -> Self:
        """Put tensors one behind the other."""
        offsets, end, exchanged = [], 0, 0
        for entry in entries:
            offsets.append(end)
            end += -(-entry.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            if entry.kind is not Kind.FROZEN:
                exchanged = end
        return cls(tuple(entries), tuple(offsets), exchanged, end)

    def shards(self, count: int, *, cuts_tensors: bool) -> Sequence[Shard]:
        """Divide among servers, by bytes.

        Args:
            count: servers.
            cuts_tensors: every server gets the same bytes, to 16; otherwise a tensor stays whole,
                for optimizers that look at all of one.
        """
        ends = [self._cut(self.exchanged_bytes * i / count, cuts_tensors) for i in range(count + 1)]
        if any(stop <= start for start, stop in pairwise(ends)):
            raise BadInputError(
                f"{count} parameter servers are too many for {self.exchanged_bytes} bytes in "
                f"{len(self.entries)} tensors: one would hold nothing; use fewer"
            )
        last = count - 1
        return [
            Shard(
                start=ends[i],
                stop=ends[i + 1],
                frozen_start=self.exchanged_bytes,
                frozen_stop=self.size_bytes if i == last else self.exchanged_bytes,
            )
            for i in range(count)
        ]

    def pieces(self, shard: Shard) -> Iterator[Piece]:
        """Yield the tensors of a shard, in order; those that are empty are left out."""
        for entry, offset in zip(self.entries, self.offsets, strict=True):
            frozen = entry.kind is Kind.FROZEN
            low, high = (
                (shard.frozen_start, shard.frozen_stop) if frozen else (shard.start, shard.stop)
            )
            start, stop = max(offset, low), min(offset + entry.size_bytes, high)
            if start < stop:
                yield Piece(
                    entry=entry,
                    first=(start - offset) // entry.element_bytes,
                    count=(stop - start) // entry.element_bytes,
                    offset_bytes=start - low + (shard.exchanged_bytes if frozen else 0),
                )

    def manifest(self) -> list[dict[str, Any]]:
        """Return the tensors as JSON, for a peer that compares them with its own."""
        return [asdict(entry) for entry in self.entries]

    def fingerprint(self) -> str:
        """Return what differs where anything of the manifest does."""
        text = json.dumps(self.manifest(), separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _cut(self, wanted: float, cuts_tensors: bool) -> int:
        if cuts_tensors:
            return min(round(wanted / ALIGNMENT_BYTES) * ALIGNMENT_BYTES, self.exchanged_bytes)
        borders = [offset for offset in self.offsets if offset < self.exchanged_bytes]
        return min([*borders, self.exchanged_bytes], key=lambda border: abs(border - wanted))


@dataclass(frozen=True)
class FlatBuffer:
    """Memory for tensors that lie one behind the other, seen as tensors and as bytes."""

    size_bytes: int

    @cached_property
    def raw(self) -> Tensor:
        """All of it."""
        return torch.zeros(self.size_bytes, dtype=torch.uint8)

    @cached_property
    def bytes(self) -> memoryview:
        """The same memory, for sockets."""
        return bytes_of(self.raw)

    def view(self, offset_bytes: int, entry: Entry, count: int | None = None) -> Tensor:
        """Return a tensor in it; in its own shape unless a count says that it is cut."""
        elements = math.prod(entry.shape) if count is None else count
        stop = offset_bytes + elements * entry.element_bytes
        flat = self.raw[offset_bytes:stop].view(dtype_of(entry.dtype))
        return flat.view(entry.shape) if count is None else flat


def named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor, Kind]]:
    """Yield what a model's state is made of; what two names share comes once."""
    kept = model.state_dict(keep_vars=True)
    for name, parameter in model.named_parameters():
        if parameter.layout is not torch.strided:
            raise BadInputError(f"parameter {name} is {parameter.layout}; only dense ones are sent")
        yield name, parameter, Kind.TRAINED if parameter.requires_grad else Kind.FROZEN
    for name, buffer in model.named_buffers():
        if name in kept:
            yield name, buffer, Kind.BUFFER


def read_manifest(told: object) -> Layout:
    """Return the layout that a peer told.

    Raises:
        PeerRefusedError: it is none.
    """
    try:
        if not isinstance(told, list):
            raise TypeError("not a list")
        return Layout.from_entries([_read_entry(entry) for entry in told])
    except (TypeError, ValueError, KeyError) as error:
        raise PeerRefusedError(f"what the peer says of its model cannot be read: {error}") from None


def difference(ours: Layout, theirs: Layout) -> str:
    """Return how another model differs from ours, in words; empty: it does not."""
    here, there = _by_name(ours), _by_name(theirs)
    told = [
        *(f"it has no {name}" for name in here if name not in there),
        *(f"it has {name}, which is not here" for name in there if name not in here),
        *(
            f"its {name} is {_in_words(there[name])}, here it is {_in_words(entry)}"
            for name, entry in here.items()
            if name in there and there[name] != entry
        ),
    ]
    if not told and ours.entries != theirs.entries:
        told = ["its tensors are in another order"]
    more = len(told) - _SHOWN_DIFFERENCES
    rest = [f"and {more} more"] if more > 0 else []
    return "; ".join([*told[:_SHOWN_DIFFERENCES], *rest])


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the memory of a tensor; of one with gaps, a copy's."""
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())  # type: ignore[arg-type]  # NumPy's arrays are buffers


def dtype_of(name: str) -> torch.dtype:
    """Return a type of elements by its name."""
    return _DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a type of elements, without the package."""
    return str(dtype).removeprefix("torch.")


def _by_name(layout: Layout) -> Mapping[str, Entry]:
    return {entry.name: entry for entry in layout.entries}


def _in_words(entry: Entry) -> str:
    shape = "x".join(map(str, entry.shape)) or "a scalar"
    return f"{shape} {entry.dtype}, {entry.kind}"


def _read_entry(told: Any) -> Entry:
    shape = tuple(told["shape"])
    if not all(type(side) is int and 0 <= side < 2**40 for side in shape):
        raise ValueError(f"{shape!r} is no shape")
    if told["dtype"] not in _DTYPES:
        raise ValueError(f"{told['dtype']!r} is no type of elements")
    name = str(told["name"])
    return Entry(name=name, shape=shape, dtype=told["dtype"], kind=Kind(told["kind"]))
