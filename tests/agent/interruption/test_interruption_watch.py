"""The watch tells each notice once, in every weather of the metadata server."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from spotwright_agent.interruption.detect import find_cloud
from spotwright_agent.interruption.source import MetadataSource
from spotwright_agent.interruption.watch import InterruptionWatch
from spotwright_agent.readings import HostFacts, Notice, NoticeKind
from tests.fakes.metadata_server import MetadataServer, metadata_server
from tests.ports import stable_port

CLOUDS = ["aws", "gcp", "azure"]
NOWHERE = Path("/nonexistent")
PATIENCE_S = 30.0  # a machine that others use too; what comes, comes in two seconds


class Told:
    """What the watch said, as it came."""

    def __init__(self, watch: InterruptionWatch) -> None:
        self.watch = watch
        self.notices: queue.Queue[Notice] = queue.Queue()
        self.problems: queue.Queue[str] = queue.Queue()

    def kind(self) -> NoticeKind:
        return self.notices.get(timeout=PATIENCE_S).kind

    def problem(self) -> str:
        return self.problems.get(timeout=PATIENCE_S)


@contextmanager
def watching(find: Callable[[], MetadataSource | None], *, hint_s: float = 600) -> Iterator[Told]:
    told: Told

    def on_notice(notice: Notice) -> None:
        told.notices.put(notice)

    def on_problem(problem: str) -> None:
        told.problems.put(problem)

    watch = InterruptionWatch(find, on_notice=on_notice, on_problem=on_problem, hint_s=hint_s)
    told = Told(watch)
    stopping, escaped = threading.Event(), []

    def run() -> None:
        try:
            watch.run(stopping)
        except BaseException as error:
            escaped.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield told
    finally:
        stopping.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert escaped == []


def named(server: MetadataServer) -> Callable[[], MetadataSource | None]:
    return partial(find_cloud, server.cloud, base_url=server.url)


def polls(server: MetadataServer, count: int) -> None:
    """Wait until the server was asked so many times more."""
    goal, end_s = len(server.paths) + count, time.monotonic() + PATIENCE_S
    while len(server.paths) < goal:
        assert time.monotonic() < end_s
        time.sleep(0.02)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_interruption_is_told_once_and_its_withdrawal_too(cloud: str) -> None:
    with metadata_server(cloud) as server, watching(named(server)) as told:
        polls(server, 2)
        server.interrupt()
        assert told.kind() is NoticeKind.INTERRUPTION
        assert told.watch.standing is not None

        polls(server, 3)
        assert told.notices.empty()
        server.clear()
        assert told.kind() is NoticeKind.WITHDRAWN
        polls(server, 3)
        assert told.notices.empty()
        assert told.problems.empty()


def test_hint_and_interruption_are_told_apart() -> None:
    with metadata_server("aws") as server, watching(named(server)) as told:
        server.rebalance()
        assert told.kind() is NoticeKind.HINT
        server.interrupt()
        assert told.kind() is NoticeKind.INTERRUPTION
        server.clear()
        server.rebalance(seconds_ago=3)
        assert [told.kind(), told.kind()] == [NoticeKind.WITHDRAWN, NoticeKind.HINT]


def test_hint_expires_unless_it_is_repeated() -> None:
    with metadata_server("aws") as server, watching(named(server), hint_s=5) as told:
        server.rebalance()
        assert [told.kind(), told.kind()] == [NoticeKind.HINT, NoticeKind.WITHDRAWN]

        server.rebalance()  # another time
        assert told.kind() is NoticeKind.HINT


def test_facts_are_known_once_the_cloud_answers() -> None:
    with metadata_server("aws") as server, watching(named(server)) as told:
        assert told.watch.wait_for_facts(PATIENCE_S).instance_id == "i-0123456789abcdef0"
        assert told.watch.cloud == "aws"


def _absent(server: MetadataServer) -> None:
    server.stop()


def _slow(server: MetadataServer) -> None:
    server.delay_s = 1.5


def _garbage(server: MetadataServer) -> None:
    server.garbage = b"<html>"


def _cut(server: MetadataServer) -> None:
    server.close_mid_answer = True


def _huge(server: MetadataServer) -> None:
    server.garbage = b"[" * 1_000_000


def _failing(server: MetadataServer) -> None:
    server.status = 503


def _well(server: MetadataServer) -> None:
    server.garbage, server.status, server.delay_s = None, None, 0.0
    server.close_mid_answer = False
    server.stop()
    server.start()


@pytest.mark.parametrize(
    ("cloud", "spoil"),
    [
        ("aws", _absent),
        ("aws", _slow),
        ("aws", _failing),
        ("gcp", _cut),
        ("gcp", _garbage),
        ("azure", _garbage),
        ("azure", _huge),
    ],
)
def test_fault_is_told_once_costs_no_cpu_and_leaves_a_standing_notice(
    cloud: str, spoil: Callable[[MetadataServer], None]
) -> None:
    with metadata_server(cloud) as server, watching(named(server)) as told:
        server.interrupt()
        assert told.kind() is NoticeKind.INTERRUPTION

        spoil(server)
        assert told.problem()
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        time.sleep(1.5)  # several polls more
        cpu_fraction = (time.process_time() - start_cpu_s) / (time.monotonic() - start_s)
        assert cpu_fraction < 0.5  # a loop without a pause takes all of it
        assert told.problems.empty()
        assert told.notices.empty()
        assert told.watch.standing is not None

        _well(server)
        assert told.problem() == ""
        server.clear()
        assert told.kind() is NoticeKind.WITHDRAWN


def test_interruption_that_comes_during_a_fault_is_told_after_it() -> None:
    with metadata_server("aws") as server:
        server.status = 500
        with watching(named(server)) as told:
            assert told.problem()
            server.interrupt()
            server.status = None

            assert told.kind() is NoticeKind.INTERRUPTION
            assert told.problem() == ""


def test_two_lost_answers_are_no_fault() -> None:
    with metadata_server("gcp") as server, watching(named(server)) as told:
        polls(server, 2)
        server.failures_left = 2  # a poll each
        polls(server, 6)

        assert server.failures_left == 0
        assert told.problems.empty()


def test_token_that_ended_is_neither_fault_nor_withdrawal() -> None:
    with metadata_server("aws") as server, watching(named(server)) as told:
        server.interrupt()
        assert told.kind() is NoticeKind.INTERRUPTION
        server.expire_tokens()
        polls(server, 8)

        assert told.notices.empty()
        assert told.problems.empty()
        assert server.tokens_given == 2


def test_cloud_that_comes_up_after_the_agent_is_found() -> None:
    server = MetadataServer("azure")
    find = partial(find_cloud, "auto", base_url=server.url, dmi=NOWHERE)
    with watching(find) as told:
        assert told.watch.wait_for_facts(PATIENCE_S) == HostFacts()
        assert told.watch.cloud == ""
        server.start()
        try:
            server.interrupt()
            assert told.kind() is NoticeKind.INTERRUPTION
        finally:
            server.stop()


def test_host_outside_any_cloud_is_no_fault_and_stops_at_once() -> None:
    find = partial(find_cloud, "auto", base_url=f"http://127.0.0.1:{stable_port()}", dmi=NOWHERE)
    with watching(find) as told:
        assert told.watch.wait_for_facts(PATIENCE_S) == HostFacts()

    assert told.problems.empty()


class NoPauses(threading.Event):
    """Writes down how long it should wait, does not, and is set after so many waits."""

    def __init__(self, *, count: int) -> None:
        super().__init__()
        self.pauses_s: list[float] = []
        self._count = count

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses_s.append(timeout)
        if len(self.pauses_s) >= self._count:
            self.set()
        return self.is_set()


@pytest.mark.parametrize(("vendor", "longest_s"), [("Amazon EC2", 30), ("Dell Inc.", 300)])
def test_cloud_that_must_be_there_is_missed_and_searched_more_often(
    tmp_path: Path, vendor: str, longest_s: float
) -> None:
    (tmp_path / "sys_vendor").write_text(f"{vendor}\n")
    url = f"http://127.0.0.1:{stable_port()}"
    find = partial(find_cloud, "auto", base_url=url, dmi=tmp_path)
    problems: list[str] = []
    stopping = NoPauses(count=12)

    InterruptionWatch(
        find, on_notice=lambda notice: None, on_problem=problems.append, hint_s=600
    ).run(stopping)

    assert stopping.pauses_s[:3] == [2, 4, 8]  # the network may come up after the agent
    assert max(stopping.pauses_s) == longest_s
    if vendor == "Dell Inc.":
        assert problems == []
    else:
        (problem,) = problems  # told once
        assert problem.startswith(f"aws is named by the firmware, but {url} cannot be asked: ")


def test_cloud_that_was_missed_is_no_problem_once_it_answers(tmp_path: Path) -> None:
    (tmp_path / "sys_vendor").write_text("Amazon EC2\n")
    problems: list[str] = []
    with metadata_server("aws") as server:
        server.status = 403

        def find() -> MetadataSource | None:
            if problems:
                server.status = None
            return find_cloud("auto", base_url=server.url, dmi=tmp_path)

        InterruptionWatch(
            find, on_notice=lambda notice: None, on_problem=problems.append, hint_s=600
        ).run(NoPauses(count=8))

    assert len(problems) == 2
    assert "status 403" in problems[0]
    assert problems[1] == ""


def test_host_told_to_ask_nobody_asks_nobody() -> None:
    with watching(partial(find_cloud, "none")) as told:
        assert told.watch.wait_for_facts(PATIENCE_S) == HostFacts()


def test_url_that_can_never_be_asked_is_a_fault() -> None:
    with watching(partial(find_cloud, "aws", base_url="ftp://x")) as told:
        assert "http://HOST:PORT" in told.problem()


def test_listener_that_fails_does_not_end_the_watch() -> None:
    calls: queue.Queue[NoticeKind] = queue.Queue()

    def fail(notice: Notice) -> None:
        calls.put(notice.kind)
        raise RuntimeError("full")

    with metadata_server("aws") as server:
        watch = InterruptionWatch(
            named(server), on_notice=fail, on_problem=lambda problem: None, hint_s=600
        )
        stopping = threading.Event()
        thread = threading.Thread(target=watch.run, args=(stopping,))
        thread.start()
        try:
            server.interrupt()
            assert calls.get(timeout=PATIENCE_S) is NoticeKind.INTERRUPTION
            server.clear()
            assert calls.get(timeout=PATIENCE_S) is NoticeKind.WITHDRAWN
        finally:
            stopping.set()
            thread.join(PATIENCE_S)
