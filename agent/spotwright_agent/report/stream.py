"""One call to the daemon: hello, batches out, answers in.

gRPC takes requests from one thread and gives responses to another; both only move messages between
the call and queues, so that whoever reports never waits for the network.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from spotwright_agent.report.certificate_watch import CertificateState
from spotwright_agent.report.clock import Clock
from spotwright_agent.report.facts import AgentFacts
from spotwright_agent.report.messages import facts_to_proto
from spotwright_agent.report.spool_file import Spooled
from spotwright_agent.report.statuses import SessionEnd, end_of

Heard = Callable[["SessionStream", v1.SessionResponse | SessionEnd], None]


class SessionStream:
    """A session as far as it is known here. `heard` is called in another thread."""

    def __init__(self, channel: Any, facts: AgentFacts, *, boot_id: str, heard: Heard) -> None:
        self.facts, self.boot_id = facts, boot_id
        self.certificate: CertificateState = ()  # the files that it shows
        self.welcome: v1.Welcome | None = None
        self.sent = 0  # the last number sent
        self.unacked: deque[Spooled] = deque()
        self.draining_until_s: float | None = None
        self.reconnect_after_s: float | None = None
        self.finished = False  # nothing more may be sent
        self.progress_s = time.monotonic()
        self._channel, self._heard = channel, heard
        self._requests: queue.SimpleQueue[v1.SessionRequest | None] = queue.SimpleQueue()
        hello = facts_to_proto(facts, boot_id=boot_id)
        self._requests.put(v1.SessionRequest(hello=hello))
        self._call = TelemetryServiceStub(channel).Session(self._outgoing())  # type: ignore[no-untyped-call]
        threading.Thread(target=self._listen, name="report-listen", daemon=True).start()

    def send(self, batch: Spooled, *, clock: Clock) -> None:
        """Send a batch under its number."""
        assert batch.sequence is not None
        message = v1.Batch.FromString(batch.parcel.document)
        message.sequence = self.sent = batch.sequence
        message.send_time_unix_ms = batch.parcel.stamp.now_ms(clock)
        message.dropped_sample_count = batch.dropped_count
        if not self.unacked:
            self.progress_s = time.monotonic()
        self.unacked.append(batch)
        self._requests.put(v1.SessionRequest(batch=message))

    def acknowledged(self, sequence: int) -> None:
        """Note what the daemon has."""
        self.progress_s = time.monotonic()
        while self.unacked and (self.unacked[0].sequence or 0) <= sequence:
            self.unacked.popleft()

    @property
    def silent_s(self) -> float:
        """How long an answer has been due; 0: none is."""
        waits = self.welcome is None or self.unacked
        return time.monotonic() - self.progress_s if waits else 0.0

    @property
    def has_unacked_notice(self) -> bool:
        """A notice is on its way."""
        return any(batch.is_notice for batch in self.unacked)

    def finish(self) -> None:
        """Say that nothing more comes; the daemon ends the session after its last answer."""
        self.finished = True
        self._requests.put(None)

    def close(self) -> None:
        """End it now, whatever is on its way."""
        self._requests.put(None)
        self._call.cancel()
        self._channel.close()

    def _outgoing(self) -> Iterator[v1.SessionRequest]:
        while (request := self._requests.get()) is not None:
            yield request

    def _listen(self) -> None:
        end = SessionEnd("OK")
        try:
            for response in self._call:
                self._heard(self, response)
        except grpc.RpcError as error:
            end = end_of(error)
        except ValueError as error:  # the channel was closed before the call began
            end = SessionEnd("CANCELLED", str(error))
        self._heard(self, end)
