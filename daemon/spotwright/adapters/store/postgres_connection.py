"""Connections to PostgreSQL that never wait for ever.

Who waits for a server that is gone waits at most

    5 s    to connect;
    10 s   for the host to confirm what was sent (tcp_user_timeout), some 15 s for a sign of
           life from a host that confirmed it (keepalives);
    20 s   for the next bytes of an answer, whatever the network says: a proxy in between, or a
           server that hangs, confirms everything and never answers.

A server that lives ends a statement after 15 s: it does not go on for someone who is gone. The
limits leave room in the 45 s that a daemon has to stop: 25 s with a silent server and no agents.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

_INTERVAL_S = 0.1  # how often a wait is looked at
_SETTINGS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,  # ms
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "options": "-c statement_timeout=15s",
}
T = TypeVar("T")


class TimedConnection(psycopg.Connection[Any]):
    """Is closed when an answer takes too long; one that came later would answer the next call."""

    answer_s: float | None = 20.0

    def wait(self, gen: PQGen[T], interval: float = _INTERVAL_S, *args: Any, **kwargs: Any) -> T:
        """Wait for an answer."""
        if self.answer_s is not None:
            gen = self._in_time(gen, self.answer_s)
        return super().wait(gen, interval, *args, **kwargs)

    def _in_time(self, gen: PQGen[T], limit_s: float) -> PQGen[T]:
        """Do as a generator of the driver does, but stop when nothing was ready for too long."""
        last_s = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now_s = time.monotonic()
                if ready:
                    last_s = now_s
                elif now_s - last_s > limit_s:
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {limit_s:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


def connect(*arguments: Any, **settings: Any) -> TimedConnection:
    """Connect; what the URL says goes before what is usual here."""
    return TimedConnection.connect(*arguments, **_SETTINGS | settings)


@contextmanager
def without_limits(connection: TimedConnection) -> Iterator[None]:
    """Let statements of the transaction that is open take as long as they take."""
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.answer_s = None
    try:
        yield
    finally:
        del connection.answer_s
