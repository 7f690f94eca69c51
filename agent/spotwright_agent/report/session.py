"""The thread that reports: cuts batches, spools them, and keeps a session with the daemon.

It waits in one place, for answers, for something urgent or for time to pass. At most
max_unacked_batches are on their way, of which one place is left free for a notice.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from spotwright.v1 import telemetry_pb2 as v1
from spotwright_agent.commands import Command
from spotwright_agent.report.backoff import Backoff
from spotwright_agent.report.certificate_watch import CertificateState, CertificateWatch
from spotwright_agent.report.channel import ChannelFilesError, check_address, open_channel
from spotwright_agent.report.facts import AgentFacts
from spotwright_agent.report.messages import command_from_proto, sampling_from_proto
from spotwright_agent.report.outbox import Outbox
from spotwright_agent.report.spool import Spool
from spotwright_agent.report.statuses import SessionEnd
from spotwright_agent.report.stream import SessionStream
from spotwright_agent.tls_files import TlsFiles

_log = logging.getLogger(__name__)
_LONGEST_WAIT_S = 1.0  # until somebody who stops the agent without `wake` is noticed
_STOP_S = 3.0
_DRAIN_S = 30.0
_CLASH_S = 120.0  # a session that lasts so long has no rival
_CLASH = "another agent reports under the same name; give each host a name and certificate"

_Event = tuple[SessionStream, v1.SessionResponse | SessionEnd] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPatience:
    """How long an answer may take before another session is tried, and how often to look."""

    welcome_s: float = 20.0
    ack_s: float = 30.0
    notice_ack_s: float = 10.0
    look_s: float = 10.0  # between looks at the certificate's files


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigures:
    """What became of the batches so far."""

    connected: bool
    unacked_batches: int
    spooled_batches: int
    spooled_bytes: int
    dropped_samples: int
    sent_batches: int
    acked_batches: int
    session_count: int
    last_error: str
    certificate_days_left: float | None


class Reporter:
    """Tells the daemon what the outbox gathers, sooner or later."""

    def __init__(
        self,
        outbox: Outbox,
        spool: Spool,
        *,
        address: str,
        tls: TlsFiles | None,
        facts: Callable[[], AgentFacts],
        on_command: Callable[[Command], None],
        patience: SessionPatience | None = None,
    ) -> None:
        """Prepare to report; `facts` and `on_command` run in its thread and must not block.

        Raises:
            SettingsError: the address would be reached in the clear from elsewhere.
        """
        check_address(address, tls=tls)
        self._outbox, self._spool, self._address, self._tls = outbox, spool, address, tls
        self._facts, self._on_command = facts, on_command
        self._patience = patience or SessionPatience()
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._backoff = Backoff()
        self._certificates = CertificateWatch(tls)
        self._stream: SessionStream | None = None
        self._renewal: SessionStream | None = None  # takes over when it is welcomed
        self._renewal_problem = ""
        self._tried: CertificateState = ()  # the files of the latest try
        self._next_try_s: float = 0.0
        self._next_look_s = 0.0
        self._may_hurry = True  # a notice need not wait for the next try
        self._one_by_one = False  # to find the batch that the daemon does not take
        self._clash_s = -_CLASH_S
        self._sent = self._acked = self._sessions = 0
        self._last_error = ""
        outbox.on_ready(self.wake)

    def wake(self) -> None:
        """Have the outbox looked at now; any thread may call it."""
        self._events.put(None)

    def figures(self) -> ReportFigures:
        """Return what became of the batches so far, to any thread."""
        stream, spool = self._stream, self._spool
        return ReportFigures(
            connected=stream is not None and stream.welcome is not None,
            unacked_batches=0 if stream is None else len(stream.unacked),
            spooled_batches=spool.batch_count,
            spooled_bytes=spool.document_bytes,
            dropped_samples=spool.dropped_total,
            sent_batches=self._sent,
            acked_batches=self._acked,
            session_count=self._sessions,
            last_error=self._last_error,
            certificate_days_left=self._certificates.days_left,
        )

    def run(self, stopping: threading.Event) -> None:
        """Report until told to stop, then for a moment longer to send what is left."""
        while not stopping.is_set():
            try:
                self._turn()
            except Exception:  # a fault of ours must not end reporting for good
                _log.exception("reporting failed, and begins anew")
                self._leave()
                self._next_try_s = time.monotonic() + self._backoff.after_failure_s()
                stopping.wait(1.0)
        self._send_what_is_left()
        self._leave()

    def _send_what_is_left(self) -> None:
        give_up_s = time.monotonic() + _STOP_S
        self._cut()
        if self._stream is not None:
            self._stream.draining_until_s = give_up_s
        while self._is_welcome() and self._spool.batch_count and time.monotonic() < give_up_s:
            self._turn()

    def _leave(self) -> None:
        for stream in (self._stream, self._renewal):
            if stream is not None:
                stream.close()
        self._stream = self._renewal = None

    def _turn(self) -> None:
        try:
            event = self._events.get(timeout=self._wait_s())
        except queue.Empty:
            event = None
        if event is not None:
            self._hear(*event)
        if self._outbox.due_in_s() == 0.0:
            self._cut()
        now_s = time.monotonic()
        if now_s >= self._next_look_s:
            self._look(now_s)
        if self._stream is None and now_s >= self._next_try_s:
            self._stream = self._opened()
        self._end_what_is_silent()
        self._send()

    def _wait_s(self) -> float:
        due_s = self._outbox.due_in_s()
        wait_s = _LONGEST_WAIT_S if due_s is None else min(due_s, _LONGEST_WAIT_S)
        if self._stream is None:
            wait_s = min(wait_s, self._next_try_s - time.monotonic())
        return max(0.0, wait_s)

    def _cut(self) -> None:
        """Put what was gathered into the spool."""
        parcels, dropped_count = self._outbox.cut()
        self._spool.count_dropped(dropped_count)
        for parcel in parcels:
            self._spool.put(parcel)
        self._outbox.set_fault("spool", self._spool.problem)
        if any(parcel.kind == parcel.kind.NOTICE for parcel in parcels) and self._may_hurry:
            self._next_try_s = min(self._next_try_s, time.monotonic())

    def _look(self, now_s: float) -> None:
        """See whether certificate, name or rival changed."""
        self._next_look_s = now_s + self._patience.look_s
        certificate = self._certificates.state()
        self._certificates.look()
        self._outbox.set_fault("certificate", self._certificates.problem)
        if now_s - self._clash_s >= _CLASH_S:
            self._outbox.set_fault("report", "")
        stream = self._stream
        if stream is None:
            if certificate != self._tried:
                self._next_try_s = min(self._next_try_s, now_s)
            return
        on_its_way = self._renewal is not None or stream.welcome is None
        if not on_its_way and (certificate, self._facts()) != (stream.certificate, stream.facts):
            self._renewal = self._opened()

    # The session

    def _opened(self) -> SessionStream | None:
        self._tried = self._certificates.state()  # before the files are read
        try:
            channel = open_channel(self._address, tls=self._tls)
        except ChannelFilesError as error:
            self._wait_after(SessionEnd("UNAVAILABLE", str(error)))
            return None
        boot_id = self._spool.boot_id
        stream = SessionStream(channel, self._facts(), boot_id=boot_id, heard=self._heard)
        stream.certificate = self._tried
        return stream

    def _heard(self, stream: SessionStream, what: v1.SessionResponse | SessionEnd) -> None:
        self._events.put((stream, what))

    def _is_welcome(self) -> bool:
        return self._stream is not None and self._stream.welcome is not None

    def _hear(self, stream: SessionStream, what: v1.SessionResponse | SessionEnd) -> None:
        if stream is not self._stream and stream is not self._renewal:
            return  # of a session that was left
        if isinstance(what, SessionEnd):
            self._ended(stream, what)
        elif what.HasField("welcome"):
            self._welcomed(stream, what.welcome)
        elif what.HasField("ack"):
            stream.acknowledged(what.ack.sequence)
            self._acked += self._spool.forget_up_to(what.ack.sequence)
            self._backoff.reset()
            self._last_error = ""
            self._one_by_one = self._one_by_one and bool(self._spool.batch_count)
        elif what.HasField("command"):
            self._commanded(stream, what.command)

    def _welcomed(self, stream: SessionStream, welcome: v1.Welcome) -> None:
        if stream is self._renewal and self._stream is not None:
            self._stream.close()
            _log.info("certificate or facts changed; another session took over")
        self._stream, self._renewal = stream, None
        self._renewal_problem = ""
        self._sessions += 1
        _log.info("a session with %s is open", self._address)
        self._may_hurry = True
        stream.welcome, stream.sent = welcome, welcome.last_sequence
        stream.progress_s = time.monotonic()
        self._spool.skip_numbers_to(welcome.last_sequence)
        self._acked += self._spool.forget_up_to(welcome.last_sequence)
        self._outbox.repeat_faults()
        sampling = sampling_from_proto(welcome.sampling)
        if sampling is not None:
            self._outbox.set_batch_s(sampling.batch_s)
            self._tell(sampling)

    def _commanded(self, stream: SessionStream, message: v1.Command) -> None:
        if message.HasField("drain"):
            self._cut()
            stream.draining_until_s = time.monotonic() + _DRAIN_S
            stream.reconnect_after_s = message.drain.reconnect_after_s
            return
        command = command_from_proto(message)
        if command is None:
            _log.warning("a command is not known to this agent: %s", message.command_id)
            return
        if message.HasField("set_sampling"):
            self._outbox.set_batch_s(message.set_sampling.batch_s)
        self._tell(command)

    def _tell(self, command: Command) -> None:
        try:
            self._on_command(command)
        except Exception:  # reporting goes on, whatever a command does
            _log.exception("a command failed")

    def _send(self) -> None:
        stream = self._stream
        if stream is None or stream.welcome is None:
            return
        if stream.boot_id != self._spool.boot_id:  # a disk came back, with numbers of its own
            self._ended(stream, SessionEnd("ABORTED", "the spool goes on with older numbers"))
            return
        places = 1 if self._one_by_one else max(1, stream.welcome.max_unacked_batches)
        while len(stream.unacked) < min(places, self._spool.batch_count) and not stream.finished:
            batch = self._spool.numbered_after(stream.sent) or self._spool.number_next(notice=True)
            if batch is None and len(stream.unacked) < max(1, places - 1):
                batch = self._spool.number_next(notice=False)
            if batch is None:
                break
            stream.send(batch, clock=self._spool.clock)
            self._sent += 1
        if stream.draining_until_s is not None and not stream.finished:
            is_late = time.monotonic() >= stream.draining_until_s
            if is_late or self._spool.batch_count <= len(stream.unacked):
                stream.finish()

    def _end_what_is_silent(self) -> None:
        for stream in (self._stream, self._renewal):
            if stream is None:
                continue
            limit_s = self._patience.ack_s
            if stream.welcome is None:
                limit_s = self._patience.welcome_s
            elif stream.has_unacked_notice:
                limit_s = self._patience.notice_ack_s
            if stream.silent_s > limit_s:
                message = f"no answer for {stream.silent_s:.0f} s"
                self._ended(stream, SessionEnd("DEADLINE_EXCEEDED", message))

    def _ended(self, stream: SessionStream, end: SessionEnd) -> None:
        stream.close()
        if stream is self._renewal:  # the older one goes on, and another try comes
            self._renewal = None
            if end.text != self._renewal_problem:
                _log.warning("the new session did not begin: %s", end.text)
            self._renewal_problem = end.text
            return
        if end.code == "INVALID_ARGUMENT":
            self._refused(stream, end)
        # The daemon ends a session when the next one of the same agent begins, and this may be
        # heard before the welcome. So a renewal that is on its way takes over, whatever the end.
        self._stream, self._renewal = self._renewal, None
        if stream.reconnect_after_s is not None:
            self._next_try_s = time.monotonic() + stream.reconnect_after_s
        elif self._stream is None:
            self._wait_after(end)

    def _refused(self, stream: SessionStream, end: SessionEnd) -> None:
        """Leave out a batch that the daemon does not take; where it names none, look for it."""
        sequence = end.sequence
        if sequence is None and self._one_by_one and stream.unacked:
            sequence = stream.unacked[0].sequence
        if sequence is None:
            self._one_by_one = bool(stream.unacked)
        elif self._spool.discard(sequence):
            self._one_by_one = False
            _log.error("the daemon does not take batch %d, dropped: %s", sequence, end.text)

    def _wait_after(self, end: SessionEnd) -> None:
        self._may_hurry = end.reason != "SESSION_REPLACED" and end.code != "RESOURCE_EXHAUSTED"
        if end.reason == "SESSION_REPLACED":
            wait_s = self._backoff.after_replacement_s()
            self._clash_s = time.monotonic()
            self._outbox.set_fault("report", _CLASH)
            end = end._replace(message=f"{_CLASH}; {end.message}")
        else:
            wait_s = self._backoff.after_failure_s(asked_s=end.retry_after_s)
        if end.text != self._last_error:
            _log.warning("no session, next try in %.1f s: %s", wait_s, end.text)
        self._last_error = end.text
        self._next_try_s = time.monotonic() + wait_s
