"""Items kept and asked of peers, and batches prepared once for all."""

import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, BatchError, OutsideWorldError
from spotwright.train.data import (
    BatchPreparer,
    ItemPeer,
    KeptItems,
    PartitionedItems,
    shared_batches,
)


class Storage:
    """Items of ten bytes each, and how often each was read."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    def fetch(self, index: int) -> bytes:
        self.reads.append(index)
        return f"item{index:6}".encode()


@given(st.integers(1, 40), st.integers(0, 40), st.randoms())
def test_from_the_second_epoch_on_there_are_as_many_hits_as_items_kept(
    count: int, kept: int, dice: random.Random
) -> None:
    storage = Storage()
    items = KeptItems(storage.fetch, capacity_bytes=10 * kept)
    for epoch in range(3):
        order = list(range(count))
        dice.shuffle(order)
        before = items.hits
        assert all(items.get(i) == f"item{i:6}".encode() for i in order)
        assert items.hits - before == (0 if epoch == 0 else min(kept, count))

    assert len(items) == min(kept, count)


def test_a_cache_of_less_than_nothing_is_refused() -> None:
    with pytest.raises(BadInputError, match="capacity_bytes is -1"):
        KeptItems(Storage().fetch, capacity_bytes=-1)


def test_nodes_read_each_item_once_from_storage_and_then_of_each_other() -> None:
    storages = [Storage() for _ in range(3)]
    kept = [KeptItems(storage.fetch, capacity_bytes=1000) for storage in storages]
    servers = [ItemPeer(items, Address("127.0.0.1", 0)) for items in kept]
    peers = [str(server.address) for server in servers]
    nodes = [PartitionedItems(kept[i], peers, node=i, fetch=storages[i].fetch) for i in range(3)]
    for _ in range(2):
        for node in nodes:
            assert [node.get(i) for i in range(12)] == [Storage().fetch(i) for i in range(12)]
    servers[2].close()
    lost = [nodes[0].get(i) for i in range(12)]
    for node, server in zip(nodes, servers, strict=True):
        node.close()
        server.close()

    assert [sorted(storage.reads)[:4] for storage in storages[1:]] == [[1, 4, 7, 10], [2, 5, 8, 11]]
    assert [node.from_peers for node in nodes] == [20, 16, 16]
    assert lost == [Storage().fetch(i) for i in range(12)]
    assert sorted(storages[0].reads) == [0, 2, 3, 5, 6, 8, 9, 11]


def test_a_node_that_is_not_among_the_peers_is_refused() -> None:
    kept = KeptItems(Storage().fetch, capacity_bytes=0)

    with pytest.raises(BadInputError, match="no node 1 of 1"):
        PartitionedItems(kept, ["127.0.0.1:1"], node=1, fetch=Storage().fetch)


def test_each_batch_is_prepared_once_and_seen_by_every_worker(tmp_path: Path) -> None:
    made: list[int] = []

    def prepare(count: int):  # type: ignore[no-untyped-def]
        for number in range(count):
            made.append(number)
            yield torch.full((3, 2), float(number)), torch.arange(3) + number

    preparer = BatchPreparer(tmp_path / "s", slots=2, slot_bytes=256)
    seen: dict[str, list[tuple[float, int]]] = {"a": [], "b": [], "leaves": []}

    def consume(name: str, most: int) -> None:
        for inputs, targets in shared_batches(tmp_path / "s"):
            assert inputs.shape == (3, 2)
            seen[name].append((float(inputs.mean()), int(targets[2])))
            if len(seen[name]) == most:
                return

    threads = [
        threading.Thread(target=consume, args=(name, most))
        for name, most in (("a", 99), ("b", 99), ("leaves", 4))
    ]
    for thread in threads:
        thread.start()
    preparer.run(prepare(20), workers=3)
    for thread in threads:
        thread.join()
    preparer.close()

    assert made == list(range(20))
    assert seen["a"] == seen["b"] == [(float(n), n + 2) for n in range(20)]
    assert seen["leaves"] == seen["a"][:4]


def test_a_node_answers_on_after_a_peer_that_sent_no_frame() -> None:
    storage = Storage()
    server = ItemPeer(KeptItems(storage.fetch, capacity_bytes=0), Address("127.0.0.1", 0))
    with socket.create_connection((server.address.host, server.address.port)) as foreign:
        foreign.sendall(b"GET / HTTP/1.1\r\n" * 10)
        assert foreign.recv(1) == b""  # hung up on
    mine = KeptItems(storage.fetch, capacity_bytes=0)
    node = PartitionedItems(mine, ["127.0.0.1:1", str(server.address)], node=0, fetch=storage.fetch)
    item = node.get(1)
    node.close()
    server.close()

    assert (item, node.from_peers, node.from_storage) == (storage.fetch(1), 1, 0)


def test_a_worker_that_waits_is_told_when_its_preparer_closes(tmp_path: Path) -> None:
    preparer = BatchPreparer(tmp_path / "s", slot_bytes=100)
    told: list[str] = []

    def consume() -> None:
        with pytest.raises(OutsideWorldError) as raised:
            list(shared_batches(tmp_path / "s"))
        told.append(str(raised.value))

    def broken() -> Iterator[tuple[torch.Tensor, ...]]:
        yield (torch.zeros(4),)
        raise ValueError("no such image")

    consumer = threading.Thread(target=consume)
    consumer.start()
    with pytest.raises(ValueError, match="no such image"):
        preparer.run(broken())
    preparer.close()
    consumer.join(60)

    assert len(told) == 1
    assert "is gone" in told[0]


def test_workers_that_come_and_go_hold_no_batch_back_and_none_is_overwritten(
    tmp_path: Path,
) -> None:
    preparer = BatchPreparer(tmp_path / "s", slots=2, slot_bytes=256)
    seen: list[int] = []
    is_done = threading.Event()

    def visit() -> None:
        for _ in range(40):  # a connection's file number is the next one's
            for (numbers,) in shared_batches(tmp_path / "s"):
                seen.append(len(set(numbers.tolist())))
                break
        is_done.set()

    def numbers() -> Iterator[tuple[torch.Tensor]]:
        number = 0
        while not is_done.is_set():
            yield (torch.full((32,), number),)
            number += 1

    visitor = threading.Thread(target=visit)
    visitor.start()
    preparer.run(numbers(), workers=1)
    preparer.close()
    visitor.join()

    assert seen == [1] * 40


def test_a_batch_that_does_not_fit_is_told_with_its_size(tmp_path: Path) -> None:
    preparer = BatchPreparer(tmp_path / "s", slot_bytes=100)

    with pytest.raises(BatchError, match="a batch of 104 bytes does not fit into a slot of 100"):
        preparer.run([(torch.zeros(26),)], workers=0)
    preparer.close()


def test_where_nobody_prepares_a_worker_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutsideWorldError, match="nobody prepares batches at"):
        next(shared_batches(tmp_path / "s"))
