"""The agent's socket against senders of every kind."""

import array
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import inf, isnan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.steps.budget import MAX_LINES_PER_S, LineBudget
from spotwright_agent.steps.lines import LineError, read_line
from spotwright_agent.steps.step_socket import StepSocket
from spotwright_agent.training import StepReporter
from tests.agent.step_agent import listening_agent, short_path, wait_for
from tests.outside_tools import require

_NOW_MS = 1_800_000_000_000
_GOOD = b'{"step":1,"step_s":0.5}'


@pytest.fixture
def path() -> Iterator[Path]:
    with short_path() as found:
        yield found


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"[1]",
        b"\xff\xfe",
        b"{}",
        b'{"step":1}',
        b'{"step":-1,"step_s":1}',
        b'{"step":9223372036854775808,"step_s":1}',
        b'{"step":true,"step_s":1}',
        b'{"step":1,"step_s":NaN}',
        b'{"step":1,"step_s":Infinity}',
        b'{"step":1,"step_s":1e300}',
        b'{"step":1,"step_s":1,"rank":1000001}',
        b'{"step":1,"step_s":1,"samples":-1}',
        b'{"step":1,"step_s":1,"compute_s":"1"}',
        b'{"step":' + b"9" * 4_050 + b',"step_s":1}',
        b"[" * 4_000,
        b'{"step":1,"step_s":1,"x":"' + b"x" * 4_096 + b'"}',
    ],
)
def test_what_the_daemon_would_refuse_is_no_step(line: bytes) -> None:
    with pytest.raises(LineError):
        read_line(line, now_unix_ms=_NOW_MS)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(line: bytes) -> None:
    try:
        step = read_line(line, now_unix_ms=_NOW_MS)
    except LineError:
        step = None

    assert step is None or 0 <= step.step_s < inf


def test_a_run_that_diverged_has_a_loss_of_nan() -> None:
    step = read_line(b'{"step":1,"step_s":1,"loss":NaN}', now_unix_ms=_NOW_MS)
    assert step is not None
    assert step.loss is not None
    assert isnan(step.loss)


@pytest.mark.parametrize(
    ("told", "expected_ms"),
    [("1799999999000", 1_799_999_999_000), ("0", _NOW_MS), ("1e300", _NOW_MS), ('"x"', _NOW_MS)],
)
def test_an_absurd_time_is_replaced_by_the_agents(told: str, expected_ms: int) -> None:
    line = f'{{"step":1,"step_s":1,"time_unix_ms":{told}}}'.encode()
    step = read_line(line, now_unix_ms=_NOW_MS)
    assert step is not None
    assert step.time_unix_ms == expected_ms


def test_anyone_may_send_and_a_stale_socket_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stale:
        stale.bind(str(path))
    inode = path.stat().st_ino
    with listening_agent(path) as agent:
        wait_for(lambda: path.stat().st_ino != inode)
        assert path.stat().st_mode & 0o777 == 0o666
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"junk\n" + _GOOD + b"\n", str(path))
            wait_for(lambda: len(agent.steps) == 1)
        assert agent.socket.dropped_count == 1
    assert not path.exists()


def test_a_file_in_the_way_is_left_alone_and_told(path: Path) -> None:
    path.write_text("somebody's")
    with listening_agent(path) as agent:
        wait_for(lambda: bool(agent.socket.problem))
        assert "not a socket" in agent.socket.problem
    assert path.read_text() == "somebody's"


def test_processes_are_known_by_the_kernels_word_until_they_end(path: Path) -> None:
    code = (
        "import socket, sys, time\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        'line = b\'{"step":1,"step_s":1,"pid":1}\'\n'
        "s.sendto(line, sys.argv[1]); sys.stdin.read()\n"
    )
    with listening_agent(path) as agent:
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            wait_for(lambda: agent.socket.pids() == {process.pid})
            process.communicate(b"")
        wait_for(lambda: not agent.socket.pids())


def test_files_sent_along_are_not_taken(path: Path) -> None:
    with listening_agent(path) as agent:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(str(path))
            sender.send(_GOOD)
            wait_for(lambda: len(agent.steps) == 1)
            count = len(os.listdir("/proc/self/fd"))
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))
            sender.sendmsg([_GOOD], [rights])
            wait_for(lambda: len(agent.steps) == 2)
        assert len(os.listdir("/proc/self/fd")) <= count


def test_at_most_256_reporters_are_kept_the_newest(path: Path) -> None:
    with listening_agent(path) as agent:
        senders = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(260)]
        for number, sender in enumerate(senders, start=1):
            sender.bind("")
            sender.sendto(_GOOD, str(path))
            wait_for(lambda number=number: len(agent.steps) == number)  # type: ignore[misc]
        assert agent.socket.send(b"{}") == 256
        senders[-1].setblocking(False)
        assert senders[-1].recv(10) == b"{}"
        for sender in senders:
            sender.close()
        assert agent.socket.send(b"{}") == 0


def test_a_flood_is_bounded(path: Path) -> None:
    stopping = threading.Event()
    payload = b"\n".join([_GOOD] * 2_000)

    def flood() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0.1)
            while not stopping.is_set():
                try:
                    sender.sendto(payload, str(path))
                except OSError:
                    time.sleep(0.01)

    with listening_agent(path) as agent:
        thread = threading.Thread(target=flood)
        started_s = time.monotonic()
        thread.start()
        wait_for(lambda: agent.socket.step_count >= MAX_LINES_PER_S + 1)
        stopping.set()
        thread.join(10)
        seconds = int(time.monotonic() - started_s) + 2
        assert agent.socket.step_count <= seconds * MAX_LINES_PER_S


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3_000)), max_size=50))
def test_a_user_takes_no_more_than_what_is_left_for_others(wants: list[tuple[int, int]]) -> None:
    budget, taken = LineBudget(), dict.fromkeys(range(5), 0)
    for uid, wanted in wants:
        granted = budget.take(uid, wanted, now_s=1.0)
        assert 0 <= granted <= wanted
        taken[uid] += granted
    left = MAX_LINES_PER_S - sum(taken.values())
    assert left > 0
    assert budget.take(4, 1, now_s=1.0) == 1
    assert budget.take(0, MAX_LINES_PER_S, now_s=2.0) == MAX_LINES_PER_S // 2


_FLOOD = """
import os, socket, sys
os.setuid(1234)
payload = b"\\n".join([b'{"step":1,"step_s":0.5}'] * 2_000)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
    while True:
        try:
            sender.sendto(payload, sys.argv[1])
        except OSError:
            break
"""


def test_one_users_flood_leaves_the_steps_of_another_alone(path: Path) -> None:
    require(os.geteuid() == 0, "only root may become another user")
    path.parent.chmod(0o755)
    with listening_agent(path) as agent:
        flood = subprocess.Popen([sys.executable, "-c", _FLOOD, str(path)])
        try:
            wait_for(lambda: agent.socket.dropped_count > 2 * MAX_LINES_PER_S)
            reporter = StepReporter(str(path), rank=7)
            for step in range(300):
                reporter.step(step)
                time.sleep(0.002)
            reporter.close()
            wait_for(lambda: sum(step.rank == 7 for step in agent.steps) == 300)
        finally:
            flood.kill()
            flood.wait()
    assert reporter.dropped == 0


def test_a_path_that_is_too_long_is_a_problem_and_ends_when_told(tmp_path: Path) -> None:
    stopping, found = threading.Event(), StepSocket(tmp_path / ("x" * 150), on_step=print)
    thread = threading.Thread(target=found.run, args=(stopping,))
    thread.start()
    wait_for(lambda: bool(found.problem))
    stopping.set()
    thread.join(10)
    assert not thread.is_alive()
