"""How soon the daemon, and training, know what the cloud said."""

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.agent.measured_host import MeasuredHost, measured_host, served_daemon
from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from spotwright.client import Client
from spotwright.domain.job_run import Event
from spotwright_agent.training import StepReporter

_TARGET_S = 1.0
_HOST_COUNT = 4
_SEED = 7
_PATIENCE_S = 30.0


class _Log:
    """Events of a job as they come, each with when it came."""

    def __init__(self, client: Client, job_id: str) -> None:
        self._seen: list[tuple[float, Event]] = []
        self._changed = threading.Condition()
        watch = client.watch_job(job_id)
        threading.Thread(target=self._follow, args=(watch,), daemon=True).start()

    def _follow(self, watch: object) -> None:
        try:
            for update in watch:  # type: ignore[attr-defined]
                if isinstance(update, Event):
                    with self._changed:
                        self._seen.append((time.monotonic(), update))
                        self._changed.notify_all()
        except Exception as error:  # the daemon ends with the case
            print(f"watch ended: {error}") if not self._seen else None

    def first(self, is_it: Callable[[Event], bool], *, after_s: float) -> float:
        """Return when such an event came."""

        def found() -> float | None:
            return next((s for s, event in self._seen if s > after_s and is_it(event)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None, _PATIENCE_S)
            came_s = found()
        if came_s is None:
            raise TimeoutError("no event came")
        return came_s


def print_notices(*, quick: bool) -> None:
    """Print from when a notice can be seen to its event at whoever watches the job."""
    rounds = 3 if quick else 25
    with tempfile.TemporaryDirectory(prefix="sw-") as folder, ExitStack() as stack:
        daemon, client = stack.enter_context(served_daemon(Path(folder)))
        job_id = client.create_job("plan-1").job_id
        log = _Log(client, job_id)
        to_daemon_s: list[float] = []
        to_job_s: list[float] = []
        hosts = [
            stack.enter_context(
                measured_host(Path(folder) / f"h{n}", f"gpu-{n}", daemon, job_id=job_id)
            )
            for n in range(_HOST_COUNT)
        ]
        threads = [
            threading.Thread(target=_interrupt, args=(host, log, rounds, to_daemon_s, to_job_s))
            for host in hosts
        ]
        for host in hosts:
            host.agent.start()
        time.sleep(10)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    count = rounds * _HOST_COUNT
    assert (len(to_daemon_s), len(to_job_s)) == (count, count), "every notice came, to both"
    p99_s = _p99(to_daemon_s)
    lines = [
        ("to the daemon, median s", f"{statistics.median(to_daemon_s):.2f}", "-", "-"),
        ("to the daemon, p99 s", f"{p99_s:.2f}", *against(p99_s, _TARGET_S)),
        ("to the daemon, worst s", f"{max(to_daemon_s):.2f}", "-", "-"),
        ("to the training process, p99 s", f"{_p99(to_job_s):.2f}", *against(_p99(to_job_s), 1.0)),
    ]
    what = f"Notice visible to its event at a watcher of the job, {count} notices, seed {_SEED}"
    print_table(what, ("figure", "found", "target", "verdict"), lines)


def _interrupt(
    host: MeasuredHost, log: _Log, rounds: int, to_daemon_s: list[float], to_job_s: list[float]
) -> None:
    pick = random.Random(f"{_SEED} {host.name}")
    reporter = StepReporter(str(host.agent.socket_path))

    def is_of_host(kind: str) -> Callable[[Event], bool]:
        return lambda event: event.kind == kind and event.facts.get("agent_id") == host.name

    for _ in range(rounds):
        time.sleep(pick.uniform(0.0, 1.0))
        visible_s = time.monotonic()
        host.cloud.interrupt(seconds=120)
        warning = reporter.wait_for_warning(_PATIENCE_S)
        if warning is not None and warning.kind == "interruption":
            to_job_s.append(time.monotonic() - visible_s)
        to_daemon_s.append(
            log.first(is_of_host("interruption-notice"), after_s=visible_s) - visible_s
        )
        cleared_s = time.monotonic()
        host.cloud.clear()
        log.first(is_of_host("notice-withdrawn"), after_s=cleared_s)
        reporter.wait_for_warning(_PATIENCE_S)
    reporter.close()


def _p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]
