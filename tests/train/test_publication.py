"""Parameters that are lent to be sent, while others change them."""

import torch

from spotwright.train.layout import Layout
from spotwright.train.publication import Publication
from spotwright.train.served_shard import ServedShard
from spotwright.train.updates import Progress
from tests.train.small_training import build_model, sgd


def _served() -> tuple[ServedShard, Publication]:
    model = build_model()
    layout = Layout.of(model)
    [whole] = layout.shards(1, cuts_tensors=True)
    shard = ServedShard(model, sgd(model), layout=layout, shard=whole)
    return shard, Publication(shard, Progress(shard, steps=None, observe=None).lock)


def _update(shard: ServedShard) -> None:
    push = shard.room()
    for gradient in push.gradients:
        gradient.fill_(1.0)
    shard.apply(push)


def test_what_is_lent_stays_as_it_was_until_it_is_given_back() -> None:
    shard, publication = _served()

    with publication.lent() as (version, memory):
        before = bytes(memory)
        _update(shard)
        with publication.lent() as (next_version, newer):
            _update(shard)
            assert bytes(memory) == before
            assert bytes(newer) not in (before, shard.flat.bytes)

    assert (version, next_version, shard.version) == (0, 1, 2)


def test_an_update_copies_nothing_that_nobody_is_sent() -> None:
    shard, publication = _served()
    place = shard.flat.raw.data_ptr()

    for _ in range(3):
        _update(shard)
        with publication.lent() as (_, memory):
            assert bytes(memory) == bytes(shard.flat.bytes)

    assert shard.flat.raw.data_ptr() == place


def test_memory_that_was_given_back_is_used_again() -> None:
    shard, publication = _served()
    places = set()

    for _ in range(6):
        with publication.lent():
            _update(shard)
        places.add(shard.flat.raw.data_ptr())

    assert len(places) == 2


def test_training_goes_on_the_same_in_other_memory() -> None:
    (moved, publication), (stays, _) = _served(), _served()

    for _ in range(4):
        with publication.lent():
            _update(moved)
        _update(stays)

    assert torch.equal(moved.flat.raw, stays.flat.raw)
