"""The agent as it runs: its parts put together, and the loop that samples.

The main thread samples and feeds the watchdog. Notices, training steps, the session with the
daemon, probes and metrics have a thread each; none waits for another.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path

from spotwright_agent.asked_probes import AskedProbes
from spotwright_agent.collectors.all import gpu_names, open_collectors
from spotwright_agent.commands import Checkpoint, Command, Probe, SetSampling
from spotwright_agent.interruption.detect import find_cloud
from spotwright_agent.interruption.watch import InterruptionWatch
from spotwright_agent.job_warning import JobSignal, JobWarning
from spotwright_agent.readings import HostFacts, Notice, ProbeResult
from spotwright_agent.report.channel import is_loopback
from spotwright_agent.report.facts import AgentFacts
from spotwright_agent.report.outbox import Outbox
from spotwright_agent.report.session import Reporter
from spotwright_agent.report.spool import Spool, SpoolLimits, SpoolLockedError
from spotwright_agent.sampling import Sampler
from spotwright_agent.service import ServiceNotify
from spotwright_agent.settings import Settings, SettingsError
from spotwright_agent.steps.step_socket import StepSocket
from spotwright_agent.stop_signals import event_of_stop_signals
from spotwright_agent.threads import Work, Worker

_log = logging.getLogger(__name__)
_INTERVAL_S = (0.1, 10.0)  # between samples, whatever is asked: the watchdog waits for 30 s
_FACTS_S = 1.0  # how long the first session waits for what the cloud calls this host
_END_S = 5.0  # how long the parts may take to end
_MIB = 2**20


def run(settings: Settings, *, verbose: bool) -> int:
    """Run an agent until the process is told to stop, and return the exit code."""
    _log_to_stderr(logging.DEBUG if verbose else logging.INFO)
    _check_probe_listen(settings)
    stopping = event_of_stop_signals()
    try:
        agent = Agent(settings)
    except SpoolLockedError as error:  # it may end by itself: not a mistake in the settings
        _log.error("%s", error)
        return 1
    agent.run(stopping)
    return 0


class Agent:
    """All parts of one agent."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._version = version("spotwright")
        self._interval_s = 1.0
        self._sample_lag_s = 0.0
        self._old_notice_may_stand = True
        self._logged: Mapping[str, str] = {}  # what cannot be read, as the log has it
        self._workers: list[Worker] = []
        self._outbox = Outbox()
        self._spool = Spool(settings.spool_path, limits=_spool_limits(settings))
        self._watch = InterruptionWatch(
            partial(
                find_cloud,
                settings.cloud,
                base_url=settings.metadata_url,
                dmi=Path(settings.sysfs) / "class" / "dmi" / "id",
                is_spot=settings.market == "spot",
            ),
            on_notice=self._noticed,
            on_problem=partial(self._outbox.set_fault, "notices"),
            hint_s=settings.hint_s,
        )
        self._steps = StepSocket(
            settings.socket_path,
            on_step=self._outbox.add_step,
            standing=self._standing,
        )
        self._collectors = open_collectors(
            sysfs=Path(settings.sysfs),
            procfs=Path(settings.procfs),
            pids=self._steps.pids,
        )
        self._sampler = Sampler(self._collectors)
        self._warning = JobWarning(
            settings.notice_path,
            send=self._steps.send,
            on_problem=partial(self._outbox.set_fault, "job warning"),
            signal=_job_signal(settings, self._steps),
        )
        self._probes = AskedProbes(self._measure, on_result=self._outbox.add_probe)
        self._reporter = Reporter(
            self._outbox,
            self._spool,
            address=settings.daemon,
            tls=settings.tls_files,
            facts=self._facts,
            on_command=self._obey,
        )

    def run(self, stopping: threading.Event) -> None:
        """Sample until told to stop; then send what is left."""
        service = ServiceNotify.from_environment()
        self._warning.clear_request()
        works = self._works().items()
        self._workers = [Worker(name, work, stopping=stopping) for name, work in works]
        self._sample_all(stopping, service)
        service.stopping()
        self._reporter.wake()
        end_s = time.monotonic() + _END_S
        ended = [each.has_ended(wait_s=end_s - time.monotonic()) for each in self._workers]
        if all(ended):  # else it is still in use
            self._spool.close()

    def _works(self) -> Mapping[str, Work]:
        works: dict[str, Work] = {
            "report thread": self._report,
            "notice thread": self._watch.run,
            "training thread": self._steps.run,
        }
        if self._settings.probe_listen:
            works["probe listener"] = self._answer_probes
        if self._settings.metrics:
            works["metrics"] = self._show_metrics
        return works

    def _report(self, stopping: threading.Event) -> None:
        self._watch.wait_for_facts(_FACTS_S)
        self._reporter.run(stopping)

    def _sample_all(self, stopping: threading.Event, service: ServiceNotify) -> None:
        due_s = time.monotonic()
        self._sample()
        service.ready(f"samples for {self._settings.daemon}")
        while True:
            due_s = max(due_s + self._interval_s, time.monotonic())
            if stopping.wait(due_s - time.monotonic()):
                return
            self._sample_lag_s = time.monotonic() - due_s
            self._sample()
            service.alive()

    def _sample(self) -> None:
        now_s, time_unix_ms = time.monotonic(), time.time_ns() // 1_000_000
        self._outbox.add_sample(self._sampler.sample(now_s=now_s, time_unix_ms=time_unix_ms))
        self._tell_faults()
        if self._old_notice_may_stand and self._watch.has_answered:
            self._old_notice_may_stand = False
            self._warning.clear_notice()

    def _tell_faults(self) -> None:
        fine = dict.fromkeys((collector.name for collector in self._collectors), "")
        told = fine | dict(self._sampler.faults) | {"training socket": self._steps.problem}
        for name in (name for name in told if told[name] != self._logged.get(name, "")):
            _log.warning("%s: %s", name, told[name] or "fine again")
        self._logged = told
        self._outbox.set_faults(told | {worker.name: worker.problem for worker in self._workers})

    def _standing(self) -> bytes | None:
        return self._warning.standing()

    def _noticed(self, notice: Notice) -> None:
        self._outbox.add_notice(notice)
        self._warning.warn(notice)

    def _obey(self, command: Command) -> None:
        match command:
            case SetSampling(interval_s=interval_s):
                self._interval_s = min(max(interval_s, _INTERVAL_S[0]), _INTERVAL_S[1])
            case Checkpoint(seconds_left=seconds_left, interval_s=interval_s):
                self._warning.checkpoint(seconds_left=seconds_left, interval_s=interval_s)
            case Probe():
                self._probes.ask(command)

    def _facts(self) -> AgentFacts:
        cloud, told = self._watch.facts, self._settings
        return AgentFacts(
            agent_id=told.name,
            agent_version=self._version,
            hostname=socket.gethostname(),
            job_id=told.job_id,
            host=HostFacts(
                instance_id=cloud.instance_id,
                instance_type=cloud.instance_type or told.instance_type,
                zone=cloud.zone or told.zone,
                market=cloud.market or told.market,
            ),
            gpu_names=gpu_names(self._collectors),
        )

    def _measure(self, probe: Probe) -> ProbeResult:
        from spotwright_agent.probe.measure import measure  # noqa: PLC0415

        return measure(
            probe.peer,
            duration_s=probe.duration_s,
            max_mbps=probe.max_mbps,
            tls=self._settings.tls_files,
            command_id=probe.command_id,
        )

    def _answer_probes(self, stopping: threading.Event) -> None:
        from spotwright_agent.probe.listener import ProbeListener  # noqa: PLC0415

        ProbeListener(self._settings.probe_listen, tls=self._settings.tls_files).run(stopping)

    def _show_metrics(self, stopping: threading.Event) -> None:
        from spotwright_agent.metrics import MetricsEndpoint  # noqa: PLC0415

        MetricsEndpoint(self._settings.metrics, figures=self._figures).run(stopping)

    def _figures(self) -> Mapping[str, float]:
        report = self._reporter.figures()
        figures = {
            "sample_lag_seconds": self._sample_lag_s,
            "spool_bytes": report.spooled_bytes,
            "batches_sent_total": report.sent_batches,
            "batches_acked_total": report.acked_batches,
            "spool_dropped_samples_total": report.dropped_samples,
            "session_connected": float(report.connected),
            "notice_standing": float(self._watch.standing is not None),
            "steps_received_total": self._steps.step_count,
            "steps_dropped_total": self._steps.dropped_count,
        }
        if report.certificate_days_left is not None:
            figures["certificate_days_left"] = report.certificate_days_left
        faults = self._sampler.faults
        return figures | {f"collector_fault:{name}": 1.0 for name in faults}


def _check_probe_listen(settings: Settings) -> None:
    address = settings.probe_listen
    if address and settings.tls_files is None and not is_loopback(address):
        raise SettingsError(
            f"probe_listen is {address}, where other machines come in the clear; name the folder "
            "of the certificates with tls_dir, or listen on 127.0.0.1"
        )


def _job_signal(settings: Settings, steps: StepSocket) -> JobSignal | None:
    if not settings.job_signal:
        return None
    return JobSignal(
        number=signal.Signals[settings.job_signal],
        to_reporters=steps.signal,
        pid_file=Path(settings.job_pid_file) if settings.job_pid_file else None,
    )


def _spool_limits(settings: Settings) -> SpoolLimits:
    return SpoolLimits(
        max_bytes=int(settings.spool_max_mib * _MIB),
        max_age_s=settings.spool_max_days * 86_400,
        keep_free_bytes=int(settings.spool_keep_free_mib * _MIB),
    )


def _log_to_stderr(level: int) -> None:
    """Log a line a record; the journal adds the time, a terminal wants to see it."""
    in_journal = bool(os.environ.get("JOURNAL_STREAM"))
    text = "%(levelname)s %(message)s" if in_journal else "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(stream=sys.stderr, level=level, format=text)
    logging.getLogger("grpc").setLevel(logging.WARNING)
