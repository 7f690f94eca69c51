"""Frames over a real socket, well formed and not."""

import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import PeerRefusedError
from spotwright.train.wire import ConnectionLostError, Flag, Frame, FrameKind, Wire

_UINT = st.integers(0, 2**32 - 1)
_FRAMES = st.builds(
    Frame,
    kind=st.sampled_from(list(FrameKind)),
    flags=st.sampled_from([Flag.NONE, Flag.APPLIED, Flag.OVER, Flag.APPLIED | Flag.OVER]),
    sequence=st.integers(0, 2**64 - 1),
    version=st.integers(0, 2**64 - 1),
    batch=_UINT,
    staleness=_UINT,
    loss=st.floats(allow_nan=False),
    note=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Wire]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10)
        yield ours, Wire(theirs)


@given(_FRAMES, st.lists(st.binary(max_size=300), max_size=4))
def test_a_frame_arrives_as_it_was_sent(frame: Frame, parts: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Wire(ours).send(frame, [memoryview(part) for part in parts])
        room = [memoryview(bytearray(len(part))) for part in parts]
        head = Wire(theirs).receive_head()
        Wire(theirs).receive_body(head, room)

    assert [bytes(part) for part in room] == parts
    assert (head.kind, head.flags, head.sequence, head.version, head.batch, head.staleness) == (
        frame.kind, frame.flags, frame.sequence, frame.version, frame.batch, frame.staleness,
    )  # fmt: skip
    assert (head.loss, dict(head.note)) == (frame.loss, dict(frame.note))
    assert head.body_bytes == sum(map(len, parts))


def test_a_large_body_in_many_parts_arrives(pair: tuple[socket.socket, Wire]) -> None:
    ours, wire = pair
    parts = [memoryview(bytes([n % 251]) * 3001) for n in range(2000)]
    sender = threading.Thread(
        target=lambda: Wire(ours).send(Frame(kind=FrameKind.PUSH), parts), daemon=True
    )
    sender.start()
    room = memoryview(bytearray(2000 * 3001))

    wire.receive_body(wire.receive_head(), [room])
    sender.join()

    assert bytes(room) == b"".join(parts)


def _header(**changes: int | bytes | float) -> bytes:
    fields = {
        "magic": b"SPWT", "protocol": 1, "kind": 5, "flags": 0, "sequence": 1, "version": 0,
        "batch": 1, "staleness": 0, "loss": 0.0, "note_bytes": 0, "body_bytes": 0,
    } | changes  # fmt: skip
    return struct.pack("!4sHBBQQIIdIQ", *fields.values())


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (_header(magic=b"GET "), "does not speak this protocol"),
        (
            b"GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nUser-Agent: x\r\n\r\n",
            "does not speak",
        ),
        (_header(protocol=2), "version 2 of the protocol, this is version 1; install the same"),
        (_header(kind=99), "no known kind"),
        (_header(flags=128), "no known kind"),
        (_header(note_bytes=2**31), "a note of 2147483648 bytes; 65536 are allowed"),
        (_header(note_bytes=4) + b"[{!]", "not JSON"),
        (_header(note_bytes=4) + b"[41]", "no JSON object"),
    ],
)
def test_a_malformed_frame_is_refused(
    pair: tuple[socket.socket, Wire], sent: bytes, told: str
) -> None:
    ours, wire = pair
    ours.sendall(sent)

    with pytest.raises(PeerRefusedError, match=told):
        wire.receive_head()


def test_a_body_of_another_size_is_refused_before_it_is_received(
    pair: tuple[socket.socket, Wire],
) -> None:
    ours, wire = pair
    ours.sendall(_header(body_bytes=2**60))
    head = wire.receive_head()

    with pytest.raises(PeerRefusedError, match="PUSH frame of 1152921504606846976 bytes; 8 are"):
        wire.receive_body(head, [memoryview(bytearray(8))])


@given(st.binary(max_size=200))
def test_what_anybody_may_send_is_refused_or_ends(garbage: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(garbage)
        with pytest.raises((PeerRefusedError, ConnectionLostError)):
            Wire(theirs).receive_head()


def test_a_peer_that_sends_byte_by_byte_gains_no_time_by_it(
    pair: tuple[socket.socket, Wire],
) -> None:
    ours, wire = pair
    is_heard = threading.Event()

    def drip() -> None:
        while not is_heard.wait(0.01):
            ours.sendall(b"S")

    dripping = threading.Thread(target=drip)
    wire.set_deadline(0.2)
    dripping.start()
    try:
        with pytest.raises(ConnectionLostError, match=r"took too long|timed out"):
            wire.receive_head()
    finally:
        is_heard.set()
        dripping.join()


def test_the_size_that_a_note_announces_makes_no_room_for_it(
    pair: tuple[socket.socket, Wire],
) -> None:
    ours, wire = pair
    announced = 2**30
    ours.sendall(_header(note_bytes=announced) + bytes(1000))
    ours.shutdown(socket.SHUT_WR)
    tracemalloc.start()
    try:
        with pytest.raises(ConnectionLostError, match="ended the connection"):
            wire.receive_head(note_max_bytes=announced)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 1_000_000


@pytest.mark.parametrize("kept", [0, 10, 51, 60])
def test_a_frame_that_is_cut_off_is_a_lost_connection(
    pair: tuple[socket.socket, Wire], kept: int
) -> None:
    ours, wire = pair
    ours.sendall((_header(body_bytes=16) + bytes(16))[:kept])
    ours.shutdown(socket.SHUT_WR)

    with pytest.raises(ConnectionLostError, match="ended the connection"):
        wire.receive_body(wire.receive_head(), [memoryview(bytearray(16))])
