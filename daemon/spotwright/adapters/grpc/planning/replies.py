"""A worker's reply in bytes: one that says which, then a response or the status of an error."""

from google.protobuf.message import Message
from google.rpc import status_pb2

from spotwright.adapters.grpc.errors import StatusError

_RESPONSE, _STATUS = b"\x00", b"\x01"


def responded(response: Message) -> bytes:
    """Return the reply that is a response."""
    return _RESPONSE + response.SerializeToString()


def failed(status: status_pb2.Status) -> bytes:
    """Return the reply that is an error."""
    return _STATUS + bytes(status.SerializeToString())


def response_of(reply: bytes) -> bytes:
    """Return the response that a reply holds, or raise StatusError."""
    if reply[:1] == _RESPONSE:
        return reply[1:]
    raise StatusError(status_pb2.Status.FromString(reply[1:]))
