"""Times, absent fields, and text that is no text."""

from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp


def time_to_proto(time: datetime) -> Timestamp:
    """Return a time to the microsecond."""
    message = Timestamp()
    message.FromDatetime(time)
    return message


def time_from_proto(message: Timestamp) -> datetime:
    """Return a time in UTC."""
    return message.ToDatetime(tzinfo=UTC)


def optional(message: Message, name: str) -> Any:
    """Return a field, None where it is absent."""
    return getattr(message, name) if message.HasField(name) else None


def by_name(message: Message) -> dict[str, Any]:
    """Return what a message says by the names of its fields; None where one is absent."""
    return {
        field.name: getattr(message, field.name)
        if not field.has_presence or message.HasField(field.name)
        else None
        for field in message.DESCRIPTOR.fields
    }


def sayable(text: str) -> str:
    """Return a text as stderr would show it, where it is no text: bytes of a command line."""
    return text.encode("utf-8", errors="backslashreplace").decode()
