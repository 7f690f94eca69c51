"""Models as runs of bytes, and their shards."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from spotwright.domain.errors import BadInputError, PeerRefusedError
from spotwright.train.layout import (
    ALIGNMENT_BYTES,
    Entry,
    FlatBuffer,
    Kind,
    Layout,
    difference,
    read_manifest,
)

_ENTRIES = st.lists(
    st.builds(
        Entry,
        name=st.uuids().map(str),
        shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
        dtype=st.sampled_from(["float32", "float64", "bfloat16", "int64", "bool"]),
        kind=st.sampled_from(list(Kind)),
    ),
    min_size=1,
    max_size=12,
).map(lambda entries: sorted(entries, key=lambda e: list(Kind).index(e.kind)))


@given(_ENTRIES, st.integers(1, 5), st.booleans())
def test_shards_have_every_element_once(entries: list[Entry], count: int, cuts: bool) -> None:
    layout = Layout.from_entries(entries)
    try:
        shards = layout.shards(count, cuts_tensors=cuts)
    except BadInputError:
        assert layout.exchanged_bytes < count * 200 * ALIGNMENT_BYTES
        return
    had: dict[str, list[int]] = {entry.name: [] for entry in entries}
    for shard in shards:
        for piece in layout.pieces(shard):
            had[piece.entry.name].extend(range(piece.first, piece.first + piece.count))

    assert had == {entry.name: list(range(math.prod(entry.shape))) for entry in entries}


@given(_ENTRIES, st.integers(1, 4))
def test_tensors_begin_aligned_and_do_not_overlap(entries: list[Entry], count: int) -> None:
    layout = Layout.from_entries(entries)

    ends = [o + e.size_bytes for o, e in zip(layout.offsets, entries, strict=True)]
    assert all(offset % ALIGNMENT_BYTES == 0 for offset in layout.offsets)
    assert all(end <= start for end, start in zip(ends, layout.offsets[1:], strict=False))


def test_cut_shards_are_equal_to_the_alignment_and_whole_ones_follow_tensors() -> None:
    layout = Layout.of(nn.Sequential(nn.Linear(1000, 30), nn.Linear(30, 1)))

    cut = [s.exchanged_bytes for s in layout.shards(3, cuts_tensors=True)]
    whole = layout.shards(2, cuts_tensors=False)

    assert max(cut) - min(cut) <= 2 * ALIGNMENT_BYTES
    assert {shard.start for shard in whole} <= set(layout.offsets)


def test_a_shard_that_would_be_empty_is_refused() -> None:
    with pytest.raises(BadInputError, match="3 parameter servers are too many"):
        Layout.of(nn.Linear(4, 2)).shards(3, cuts_tensors=False)


def test_what_is_frozen_and_what_is_no_parameter_comes_after_what_is_trained() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    layout = Layout.of(model)

    kinds = [entry.kind for entry in layout.entries]
    assert kinds == sorted(kinds, key=[Kind.TRAINED, Kind.BUFFER, Kind.FROZEN].index)
    assert layout.size_bytes - layout.exchanged_bytes == 4 * 4 * 4 + 4 * 4


def test_a_tensor_with_two_names_is_sent_once() -> None:
    model = nn.ModuleDict({"in": nn.Embedding(10, 4), "out": nn.Linear(4, 10, bias=False)})
    model["out"].weight = model["in"].weight

    assert [entry.name for entry in Layout.of(model).entries] == ["in.weight"]


def test_a_model_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(BadInputError, match="nothing to train"):
        Layout.of(nn.Linear(2, 2).requires_grad_(False))


def test_views_of_a_flat_buffer_are_its_memory() -> None:
    entry = Entry(name="w", shape=(2, 3), dtype="float32", kind=Kind.TRAINED)
    flat = FlatBuffer(64)

    flat.view(16, entry).fill_(1.0)

    assert bytes(flat.bytes[16:40]) == torch.ones(6).numpy().tobytes()
    assert not any(flat.bytes[:16])
    assert not any(flat.bytes[40:])


def test_differences_are_named() -> None:
    ours, theirs = Layout.of(nn.Linear(4, 2)), Layout.of(nn.Linear(4, 3, bias=False))

    told = difference(ours, theirs)

    shapes = "its weight is 3x4 float32, trained, here it is 2x4 float32, trained"
    assert told == f"it has no bias; {shapes}"
    assert difference(ours, ours) == ""
    assert ours.fingerprint() != theirs.fingerprint()


@given(_ENTRIES)
def test_a_manifest_is_read_as_it_was_told(entries: list[Entry]) -> None:
    layout = Layout.from_entries(entries)

    assert read_manifest(layout.manifest()) == layout


@pytest.mark.parametrize(
    "told",
    [None, 3, [3], [{}], [{"name": "w", "shape": [-1], "dtype": "float32", "kind": "trained"}],
     [{"name": "w", "shape": [1], "dtype": "float31", "kind": "trained"}],
     [{"name": "w", "shape": [1], "dtype": "float32", "kind": "secret"}]],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(told: object) -> None:
    with pytest.raises(PeerRefusedError, match="cannot be read"):
        read_manifest(told)
