"""A dataset's items kept by the nodes together: each item by one of them.

A node that misses an item asks the node that owns it, whose cache is faster than storage, and goes
to storage itself where that node is away. Items are owned by their number, modulo the nodes.
"""

import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, PeerRefusedError
from spotwright.train.data.kept_items import KeptItems
from spotwright.train.listener import Listener
from spotwright.train.secure import accept, check_reachable, connect, listen, server_context
from spotwright.train.wire import ConnectionLostError, Frame, FrameKind, Wire

_ITEM_MAX_BYTES = 1 << 30
_ASK_S, _AVOID_S = 5.0, 10.0  # a peer that is away is not asked again for a while


class ItemPeer:
    """Answers other nodes that ask for items; runs in threads of this process."""

    def __init__(self, items: KeptItems, address: Address, *, tls_dir: Path | None = None) -> None:
        """Listen; other hosts only with certificates."""
        check_reachable(address, tls_dir)
        self._items = items
        self._context = server_context(tls_dir) if tls_dir else None
        self._wires: set[Wire] = set()
        listening = listen(address)
        self.address = Address(*listening.getsockname()[:2])
        self._listener = Listener(listening, self._answer)

    def close(self) -> None:
        """Answer nobody any more."""
        self._listener.close()
        for wire in list(self._wires):
            wire.close()

    def _answer(self, connection: socket.socket) -> None:
        try:
            wire = Wire(accept(connection, self._context))
        except (PeerRefusedError, OSError):
            connection.close()
            return
        self._wires.add(wire)
        try:
            while True:
                asked = wire.receive_head()
                wire.receive_body(asked)
                if asked.kind is not FrameKind.FETCH:
                    raise PeerRefusedError(f"a {asked.kind.name} frame where items are asked for")
                item = self._items.get(asked.sequence)
                answer = Frame(kind=FrameKind.ITEM, sequence=asked.sequence)
                wire.send(answer, [memoryview(item)])
        except (PeerRefusedError, ConnectionLostError):
            pass  # the one who asked is gone, or asks what nobody answers
        finally:
            self._wires.discard(wire)
            wire.close()


class PartitionedItems:
    """Items as one node of several sees them. For one thread; each has an instance of its own."""

    def __init__(
        self,
        own: KeptItems,
        peers: Sequence[str],
        *,
        node: int,
        fetch: Callable[[int], bytes],
        tls_dir: Path | None = None,
    ) -> None:
        """Begin; a peer is connected when it is first asked.

        Args:
            own: what this node keeps: the items that it owns.
            peers: HOST:PORT of each node, in the same order on all of them.
            node: which of them this is.
            fetch: reads an item from storage.
            tls_dir: certificates, for peers on other hosts.
        """
        if not 0 <= node < len(peers):
            raise BadInputError(f"there is no node {node} of {len(peers)}")
        self._own, self._node, self._fetch, self._tls_dir = own, node, fetch, tls_dir
        self._peers = [Address.parse(peer) for peer in peers]
        self._wires: dict[int, Wire] = {}
        self._away_until_s: dict[int, float] = {}
        self.from_peers = self.from_storage = 0

    def get(self, index: int) -> bytes:
        """Return an item: of this node, of its owner, or of storage."""
        owner = index % len(self._peers)
        if owner == self._node:
            return self._own.get(index)
        if time.monotonic() >= self._away_until_s.get(owner, 0.0):
            try:
                item = self._ask(owner, index)
            except (ConnectionLostError, PeerRefusedError):
                self._away_until_s[owner] = time.monotonic() + _AVOID_S
                self._forget(owner)
            else:
                self.from_peers += 1
                return item
        self.from_storage += 1
        return self._fetch(index)

    def close(self) -> None:
        """End the connections with peers."""
        for owner in list(self._wires):
            self._forget(owner)

    def _ask(self, owner: int, index: int) -> bytes:
        wire = self._wires.get(owner)
        if wire is None:
            address = self._peers[owner]
            connection = connect(address, tls_dir=self._tls_dir, timeout_s=_ASK_S)
            wire = self._wires[owner] = Wire(connection)
            wire.set_timeout(_ASK_S)
        wire.send(Frame(kind=FrameKind.FETCH, sequence=index))
        answer = wire.receive_head()
        if answer.kind is not FrameKind.ITEM or answer.body_bytes > _ITEM_MAX_BYTES:
            raise PeerRefusedError(f"{self._peers[owner]} answered no item")
        item = bytearray(answer.body_bytes)
        wire.receive_body(answer, [memoryview(item)])
        return bytes(item)

    def _forget(self, owner: int) -> None:
        if wire := self._wires.pop(owner, None):
            wire.close()
