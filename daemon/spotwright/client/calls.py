"""One call of the daemon as a value: what is sent where, and what its answer means.

Both clients run these, so that each call is described once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

T = TypeVar("T")

ANSWER_TIME_S = 30.0  # for whatever is answered at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """A question with one answer."""

    method: str  # /spotwright.v1.PlannerService/Predict
    request: Message
    response: type[Message]
    read: Callable[[Any], T]  # makes a value of the response
    timeout_s: float = ANSWER_TIME_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCall(Generic[T]):
    """A question that is answered again and again, until there is no more to say."""

    method: str
    request: Message
    response: type[Message]
    read: Callable[[Any], T]  # makes a value of each response
    timeout_s: float | None = None  # None: for as long as the daemon has something to say
