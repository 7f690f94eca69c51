"""A training process and the agent, over a real socket."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spotwright_agent.training import StepReporter
from tests.agent.step_agent import listening_agent, short_path, wait_for


@pytest.fixture
def path() -> Iterator[Path]:
    with short_path() as found:
        yield found


def test_a_step_arrives_as_it_was_told(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path), rank=3)
        before_ms = int(time.time() * 1000)
        reporter.step(7, step_s=0.5, samples=32, loss=-1.5, data_wait_s=0.1, communication_s=0.2)
        wait_for(lambda: bool(agent.steps))
        reporter.close()

    (step,) = agent.steps
    assert (step.rank, step.step, step.step_s, step.samples, step.loss) == (3, 7, 0.5, 32, -1.5)
    assert (step.data_wait_s, step.compute_s, step.communication_s) == (0.1, None, 0.2)
    assert before_ms <= step.time_unix_ms <= time.time() * 1000
    assert reporter.dropped == 0


def test_parts_of_a_step_add_up_until_it_is_told(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        for _ in range(2):
            with reporter.data_wait():
                time.sleep(0.02)
        reporter.step(0)
        reporter.step(1)
        wait_for(lambda: len(agent.steps) == 2)
        reporter.close()

    first, second = agent.steps
    assert first.data_wait_s is not None
    assert 0.04 <= first.data_wait_s <= first.step_s
    assert second.data_wait_s is None


def told_by(reporter: StepReporter, step: int) -> bool:
    reporter.step(step)
    return True


def test_no_step_is_lost_while_the_agent_restarts(path: Path) -> None:
    reporter = StepReporter(str(path))
    with listening_agent(path) as first:
        wait_for(lambda: told_by(reporter, 0) and bool(first.steps))
    told = 500
    for step in range(1, told):
        reporter.step(step)
    with listening_agent(path) as second:
        wait_for(lambda: told_by(reporter, told) and len({s.step for s in second.steps}) == told)
        reporter.close()

    assert {step.step for step in second.steps} == set(range(1, told + 1))


def test_closing_gives_a_busy_agent_a_moment(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as busy:
        busy.bind(str(path))
        busy.settimeout(20)
        lines: list[bytes] = []

        def read_late() -> None:
            time.sleep(0.1)
            while len(lines) < 101:  # with the hello
                lines.extend(busy.recv(65_536).splitlines())

        thread = threading.Thread(target=read_late)
        reporter = StepReporter(str(path))
        for step in range(100):
            reporter.step(step)
        thread.start()
        reporter.close()
        assert reporter.dropped == 0
        thread.join()


def test_a_full_queue_neither_blocks_nor_grows(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(path))
        reporter = StepReporter(str(path))
        for step in range(5_000):
            reporter.step(step)
        reporter.close()
        deaf.setblocking(False)
        lines = b"".join(deaf.recv(65_536) for _ in range(5)).count(b"\n")
    assert lines > 1
    assert 3_000 < reporter.dropped < 5_000


@pytest.mark.parametrize("where", ["absent/s", "x" * 200, "nul\0byte", "."])
def test_training_goes_on_where_there_is_no_agent(tmp_path: Path, where: str) -> None:
    reporter = StepReporter(str(tmp_path / where))
    for step in range(2_000):
        reporter.step(step)
    assert reporter.warning() is None
    assert reporter.dropped == 2_000 - 1_024
    assert reporter.problem
    reporter.close()
    reporter.step(1)
    assert reporter.dropped == 2_001


class Unreadable:
    def item(self) -> float:
        raise AssertionError("reading it would wait for a GPU")

    __float__ = __repr__ = __str__ = item  # type: ignore[assignment]


@pytest.mark.parametrize("step", [None, "7", 1.5, -1, float("nan"), Unreadable(), [1]])
def test_a_step_that_is_no_number_is_counted(path: Path, step: Any) -> None:
    with listening_agent(path):
        reporter = StepReporter(str(path))
        reporter.step(step)
        reporter.close()
    assert reporter.dropped == 1
    assert "step" in reporter.problem


@pytest.mark.parametrize("bad", ["1", -1.0, float("inf"), Unreadable()])
def test_a_figure_that_is_no_number_is_left_out_alone(path: Path, bad: Any) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        reporter.step(1, samples=bad, loss=2.0)
        assert "samples is left out" in reporter.problem
        wait_for(lambda: bool(agent.steps))
        reporter.close()
    assert (agent.steps[0].samples, agent.steps[0].loss) == (None, 2.0)


def test_a_forked_process_reports_by_itself_and_leaves_its_parent_alone(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        code = (
            "import os, sys; from spotwright_agent.training import StepReporter\n"
            "r = StepReporter(sys.argv[1]); r.step(1)\n"
            "child = os.fork()\n"
            "if not child: r.step(2); r.close(); os._exit(0)\n"
            "os.waitpid(child, 0); r.step(3); print(r.dropped)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
        )
        wait_for(lambda: len(agent.steps) == 3)
        reporter.close()
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert [step.step for step in agent.steps] == [1, 2, 3]


def test_a_warning_comes_back_with_the_seconds_left(path: Path) -> None:
    deadline_ms = int(time.time() * 1000) + 100_000
    document = {"kind": "interruption", "deadline_unix_ms": deadline_ms, "seconds_left": 1}
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        wait_for(lambda: os.getpid() in agent.socket.pids())
        assert reporter.warning() is None
        assert agent.socket.send(json.dumps(document).encode()) == 1
        warning = reporter.wait_for_warning(20)
        assert warning is not None
        assert warning.kind == "interruption"
        assert warning.seconds_left is not None
        assert 50 < warning.seconds_left <= 100
        reporter.close()
        assert agent.socket.send(b"{}") == 0


def test_whoever_comes_later_is_told_the_warning_that_stands(path: Path) -> None:
    with listening_agent(path, standing=b'{"kind":"checkpoint","interval_s":60}'):
        reporter = StepReporter(str(path))
        warning = reporter.wait_for_warning(20)
        reporter.close()
    assert warning is not None
    assert (warning.kind, warning.interval_s, warning.seconds_left) == ("checkpoint", 60, None)


def saves(reporter: StepReporter, *, steps: int = 50) -> int:
    """Run the loop of docs/training-steps.md."""
    count = 0
    for step in range(steps):
        reporter.step(step)
        count += bool(reporter.should_save())
    return count


def hint(seconds_left: float, **more: object) -> bytes:
    deadline_ms = int((time.time() + seconds_left) * 1000)
    return json.dumps({"kind": "hint", "deadline_unix_ms": deadline_ms, **more}).encode()


@pytest.mark.parametrize("way", ["socket", "file", "both"])
def test_one_request_is_one_save_and_leaves_an_interruption_standing(path: Path, way: str) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        wait_for(lambda: bool(agent.socket.pids()))
        for number in range(2):
            agent.socket.send(b'{"kind":"interruption","deadline_unix_ms":4000000000000}')
            assert saves(reporter) == (number == 0)
            document = json.dumps({"kind": "checkpoint", "time_unix_ms": number}).encode()
            if way != "socket":
                path.with_name("checkpoint.json").write_bytes(document)
            if way != "file":
                agent.socket.send(document)
            assert saves(reporter) == 1
            found = reporter.warning()
            assert found is not None
            assert found.kind == "interruption"
        reporter.close()


def test_a_hint_is_one_save_until_it_is_withdrawn_or_becomes_more(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        wait_for(lambda: bool(agent.socket.pids()))
        counts = []
        for document in (hint(100), hint(200), b'{"kind":"withdrawn"}', hint(300)):
            agent.socket.send(document)
            counts.append(saves(reporter))
        agent.socket.send(b'{"kind":"interruption"}')
        counts.append(saves(reporter))
        agent.socket.send(b'{"kind":"withdrawn"}')
        assert reporter.warning() is None
        agent.socket.send(hint(0))  # over before it came
        counts.append(saves(reporter))
        reporter.close()
    assert counts == [1, 0, 0, 1, 1, 0]


def test_what_was_asked_of_an_earlier_process_is_not_asked_again(path: Path) -> None:
    path.with_name("checkpoint.json").write_text('{"kind":"checkpoint","time_unix_ms":1}')
    reporter = StepReporter(str(path))
    assert saves(reporter) == 0
    reporter.close()


def test_a_warning_raises_the_signal_that_has_a_handler(path: Path) -> None:
    raised: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: raised.append(number))
    try:
        with listening_agent(path) as agent:
            reporter = StepReporter(str(path), signal_on_warning=signal.SIGUSR2)
            wait_for(lambda: bool(agent.socket.pids()))
            assert not raised
            agent.socket.send(b'{"kind":"hint"}')
            wait_for(lambda: bool(raised))
            found = reporter.warning()
            assert found is not None
            assert found.kind == "hint"
            reporter.close()
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_a_signal_without_a_handler_is_never_raised(path: Path) -> None:
    with listening_agent(path, standing=b'{"kind":"hint"}'):
        reporter = StepReporter(str(path), signal_on_warning=signal.SIGUSR2)
        assert reporter.wait_for_warning(20) is not None  # SIGUSR2 would have ended this process
        assert not reporter.signals
        reporter.close()


def test_nobody_but_the_agent_can_warn(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        wait_for(lambda: bool(agent.socket.pids()))
        (address,) = agent.socket._senders.addresses()
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as liar,
            pytest.raises(PermissionError),
        ):
            liar.sendto(b'{"kind":"interruption"}', address)
        assert reporter.warning() is None
        reporter.close()


def test_the_file_beside_the_socket_warns_where_no_answer_can_come(path: Path) -> None:
    reporter = StepReporter(str(path))
    notice = path.with_name("notice.json")
    notice.write_text('{"kind":"interruption"}')
    found = reporter.warning()
    assert found is not None
    assert found.kind == "interruption"
    notice.unlink()
    assert reporter.warning() is None
    reporter.close()


def test_what_comes_both_ways_is_one_warning(path: Path) -> None:
    notice = path.with_name("notice.json")
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        wait_for(lambda: bool(agent.socket.pids()))
        for document in (hint(100), b'{"kind":"withdrawn"}', hint(200)):
            kind = json.loads(document)["kind"]
            notice.unlink() if kind == "withdrawn" else notice.write_bytes(document)
            found = reporter.wait_for_warning(20)
            assert found is not None
            assert found.kind == kind
            agent.socket.send(document)
            assert reporter.wait_for_warning(0.05) is None
        reporter.close()


def test_importing_the_reporter_imports_neither_torch_nor_grpc() -> None:
    code = "import sys, spotwright_agent.training; print({'torch', 'grpc'} & set(sys.modules))"
    told = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)
    assert told == "set()\n"
