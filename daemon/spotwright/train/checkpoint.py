"""A checkpoint of one server: a header in JSON, and bytes as they lay in memory.

    magic 8 | header bytes 8 | header | parameters | tensors of the optimizer's state | CRC-32 4

The header holds the optimizer's state as a tree in which tensors are numbers, so that reading a
checkpoint makes numbers, text and tensors, and runs nothing.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spotwright.domain.errors import BadInputError, CheckpointError, PeerRefusedError
from spotwright.train.layout import (
    FlatBuffer,
    Layout,
    Shard,
    bytes_of,
    difference,
    dtype_name,
    dtype_of,
    named_tensors,
    read_manifest,
)

_MAGIC = b"SPWTCKP1"
_HEAD = struct.Struct("!8sQ")
_CRC = struct.Struct("!I")
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a server was at one version, in memory that nobody changes any more."""

    layout: Layout
    shard: Shard
    index: int
    server_count: int
    version: int
    applied: Mapping[str, int]
    members: Sequence[str]
    is_over: bool  # also where another server made the last step, and this one lacks some
    steps: int | None  # after which it was to be over
    parameters: Tensor  # flat, as bytes
    optimizer: Mapping[str, Any]


def to_parts(checkpoint: Checkpoint) -> list[memoryview]:
    """Return a checkpoint as bytes, without joining them.

    Raises:
        BadInputError: the optimizer keeps something that is neither a number, text nor a tensor.
    """
    tensors: list[Tensor] = []
    header = {
        "manifest": checkpoint.layout.manifest(),
        "shard": [
            checkpoint.shard.start, checkpoint.shard.stop,
            checkpoint.shard.frozen_start, checkpoint.shard.frozen_stop,
        ],
        "index": checkpoint.index,
        "server_count": checkpoint.server_count,
        "version": checkpoint.version,
        "applied": dict(checkpoint.applied),
        "members": list(checkpoint.members),
        "is_over": checkpoint.is_over,
        "steps": checkpoint.steps,
        "optimizer": _tree(checkpoint.optimizer, tensors),
        "tensors": [[list(t.shape), dtype_name(t.dtype)] for t in tensors],
    }  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    parts = [
        memoryview(_HEAD.pack(_MAGIC, len(text)) + text),
        bytes_of(checkpoint.parameters),
        *(bytes_of(tensor) for tensor in tensors),
    ]
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return [*parts, memoryview(_CRC.pack(crc))]


def from_bytes(content: bytes, *, place: str) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: it is truncated, changed, or no checkpoint.
    """
    least = _HEAD.size + _CRC.size
    if len(content) < least or not content.startswith(_MAGIC):
        raise CheckpointError("this is no checkpoint of spotwright train", place=place)
    body, crc = content[: -_CRC.size], _CRC.unpack(content[-_CRC.size :])[0]
    if zlib.crc32(body) != crc:
        raise CheckpointError(
            "it is truncated or was changed; take an earlier copy, or train anew", place=place
        )
    try:
        return _read(memoryview(body))
    except (KeyError, TypeError, ValueError, IndexError, PeerRefusedError) as error:
        raise CheckpointError(f"it cannot be read: {error!r}", place=place) from error


def check_fits(
    checkpoint: Checkpoint, *, layout: Layout, index: int, count: int, place: str
) -> None:
    """Raise CheckpointError where a server of this model cannot go on from it."""
    differs = difference(layout, checkpoint.layout)
    if differs:
        raise CheckpointError(f"it is of another model: {differs}", place=place)
    if (checkpoint.index, checkpoint.server_count) != (index, count):
        raise CheckpointError(
            f"it is of server {checkpoint.index} of {checkpoint.server_count}, this is server "
            f"{index} of {count}; start as many servers as it was saved with",
            place=place,
        )


def load_into(model: nn.Module, checkpoints: Sequence[Checkpoint]) -> None:
    """Copy the parameters of all servers' checkpoints into a model.

    Raises:
        CheckpointError: they are of another model, or not all are there.
    """
    layout = Layout.of(model)
    expected = checkpoints[0].server_count if checkpoints else 0
    if sorted(c.index for c in checkpoints) != list(range(max(1, expected))):
        found = f"{len(checkpoints)} of {expected}" if checkpoints else "none"
        raise CheckpointError(f"checkpoints of all servers are needed, found {found}", place="")
    tensors = {name: tensor.detach() for name, tensor, _ in named_tensors(model)}
    for checkpoint in checkpoints:
        check_fits(checkpoint, layout=layout, index=checkpoint.index, count=expected, place="given")
        flat = FlatBuffer(checkpoint.shard.size_bytes)
        flat.raw.copy_(checkpoint.parameters)
        for piece in layout.pieces(checkpoint.shard):
            stop = piece.first + piece.count
            part = flat.view(piece.offset_bytes, piece.entry, piece.count)
            tensors[piece.entry.name].view(-1)[piece.first : stop].copy_(part)


def _read(body: memoryview) -> Checkpoint:
    _, header_bytes = _HEAD.unpack(body[: _HEAD.size])
    at = _HEAD.size + header_bytes
    header = json.loads(bytes(body[_HEAD.size : at]))
    layout, shard = read_manifest(header["manifest"]), _read_shard(header["shard"])
    parameters, at = _tensor(body, at, shape=[shard.size_bytes], dtype=torch.uint8)
    tensors = []
    for shape, name in header["tensors"]:
        tensor, at = _tensor(body, at, shape=shape, dtype=dtype_of(name))
        tensors.append(tensor)
    return Checkpoint(
        layout=layout,
        shard=shard,
        index=header["index"],
        server_count=header["server_count"],
        version=header["version"],
        applied=header["applied"],
        members=header["members"],
        is_over=header["is_over"],
        steps=header.get("steps"),  # checkpoints were once without
        parameters=parameters,
        optimizer=_untree(header["optimizer"], tensors),
    )


def _read_shard(told: Sequence[int]) -> Shard:
    start, stop, frozen_start, frozen_stop = told
    return Shard(start=start, stop=stop, frozen_start=frozen_start, frozen_stop=frozen_stop)


def _tensor(
    body: memoryview, at: int, *, shape: Sequence[int], dtype: torch.dtype
) -> tuple[Tensor, int]:
    tensor = torch.empty(shape, dtype=dtype)
    memory = bytes_of(tensor)
    memory[:] = body[at : at + memory.nbytes]
    return tensor, at + memory.nbytes


def _tree(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, Mapping):
        return {"items": [[_tree(k, tensors), _tree(v, tensors)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_tree(item, tensors) for item in value]}
    if isinstance(value, _PLAIN):
        return value
    raise BadInputError(
        f"the optimizer's state holds a {type(value).__name__}, which a checkpoint cannot; keep "
        "numbers, text and tensors in it"
    )


def _untree(value: Any, tensors: Sequence[Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "items":
        return {_untree(k, tensors): _untree(v, tensors) for k, v in content}
    items = [_untree(item, tensors) for item in content]
    return items if kind == "list" else tuple(items)
