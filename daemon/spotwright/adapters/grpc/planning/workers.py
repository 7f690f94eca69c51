"""Answers that worker processes make, as a service asks for them."""

import asyncio
import math
from typing import Protocol

import grpc
from google.protobuf.message import Message

from spotwright.adapters.grpc.planning.replies import response_of
from spotwright.domain.errors import BadInputError

QUICK, SEARCH = "quick", "search"  # what is answered at once, and what may take long
STEER = "steer"  # what running jobs wait for, which no search of a person may delay
_QUICK_TIME_S = 20.0  # after which what should be quick is ended
_QUICK_WAIT_S = 10.0  # for a process; half of the above, so that what is ended has run for long
_MARGIN_S = 0.5  # in which an answer is kept and travels, before its caller gives up


class Workers(Protocol):
    """Processes that answer requests."""

    async def run(
        self, name: str, payload: bytes, *, lane: str, time_limit_s: float = math.inf
    ) -> bytes:
        """Return the reply to a request; to cancel ends the work."""


async def answered(
    workers: Workers,
    method: str,
    request: Message,
    context: grpc.aio.ServicerContext,
    *,
    lane: str = QUICK,
) -> bytes:
    """Return the response to a request before its caller gives up.

    Raises:
        StatusError: what the worker complains of.
        BusyError: no process is free in time.
        BadInputError: it takes so long that others would have to wait for it.
    """
    most_s = _QUICK_WAIT_S if lane == QUICK else math.inf
    try:
        async with asyncio.timeout(_QUICK_TIME_S if lane == QUICK else None):
            reply = await workers.run(
                method,
                request.SerializeToString(),
                lane=lane,
                time_limit_s=min(most_s, time_left_s(context)),
            )
    except TimeoutError:
        raise BadInputError(
            f"{method} took longer than {_QUICK_TIME_S:g} s; ask for less at once"
        ) from None
    return response_of(reply)


def time_left_s(context: grpc.aio.ServicerContext) -> float:
    """Return how long an answer may take; infinite where the caller waits for ever."""
    remaining_s = context.time_remaining()
    return math.inf if remaining_s is None else max(0.0, remaining_s - _MARGIN_S)
