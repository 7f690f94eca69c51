"""The job is told by file, socket and signal, and no way stops another."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from spotwright_agent.job_warning import JobSignal, JobWarning
from spotwright_agent.readings import Notice, NoticeKind
from spotwright_agent.steps.senders import Credentials, StepSenders

# Says that it is ready, then exits with the number of the first signal that it gets.
_JOB = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
print("ready", flush=True)
sys.exit(signal.sigwait({signal.SIGUSR1, signal.SIGTERM}))
"""


class Heard:
    """What the agent passed on."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.problems: list[str] = []


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def job() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", _JOB], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
        child.kill()


def warning(folder: Path, heard: Heard, *, to: JobSignal | None = None) -> JobWarning:
    return JobWarning(
        folder / "notice.json",
        send=heard.sent.append,
        on_problem=heard.problems.append,
        signal=to,
    )


def usr1(*pids: int, file: Path | None = None) -> JobSignal:
    senders = StepSenders()
    for pid in pids:
        senders.see(Credentials(pid, 0), None, now_s=0.0)
    return JobSignal(
        number=signal.SIGUSR1,
        to_reporters=lambda number: senders.signal(number, now_s=0.0),
        pid_file=file,
    )


def written(path: Path, *pids: int) -> Path:
    path.write_text("".join(f"{pid}\n" for pid in pids))
    path.chmod(0o644)
    return path


def notice(kind: NoticeKind = NoticeKind.INTERRUPTION, *, seconds: float | None = 120) -> Notice:
    now_unix_ms = int(time.time() * 1000)
    return Notice(
        kind=kind,
        time_unix_ms=now_unix_ms,
        deadline_unix_ms=None if seconds is None else now_unix_ms + int(seconds * 1000),
        source="aws",
        detail="spot instance-action: terminate",
    )


def test_file_and_datagram_say_the_same(tmp_path: Path, heard: Heard) -> None:
    said = notice()

    warning(tmp_path, heard).warn(said)

    document = json.loads((tmp_path / "notice.json").read_text())
    seconds_left = document.pop("seconds_left")
    assert 110 < seconds_left <= 120
    assert document == {
        "kind": "interruption",
        "deadline_unix_ms": said.deadline_unix_ms,
        "source": "aws",
        "detail": "spot instance-action: terminate",
        "time_unix_ms": said.time_unix_ms,
    }
    (datagram,) = heard.sent
    assert json.loads(datagram).keys() == {*document, "seconds_left"}
    assert heard.problems == [""]


def test_file_can_be_read_by_other_users_whatever_the_umask(tmp_path: Path, heard: Heard) -> None:
    before = os.umask(0o077)
    try:
        warning(tmp_path, heard).warn(notice())
    finally:
        os.umask(before)

    assert (tmp_path / "notice.json").stat().st_mode & 0o777 == 0o644


def test_no_deadline_leaves_the_seconds_open(tmp_path: Path, heard: Heard) -> None:
    warning(tmp_path, heard).warn(notice(seconds=None))

    document = json.loads((tmp_path / "notice.json").read_text())
    assert (document["deadline_unix_ms"], document["seconds_left"]) == (None, None)


def test_deadline_that_has_passed_leaves_no_seconds(tmp_path: Path, heard: Heard) -> None:
    warning(tmp_path, heard).warn(notice(seconds=-5))

    assert json.loads((tmp_path / "notice.json").read_text())["seconds_left"] == 0


def test_withdrawal_removes_the_file_and_is_sent(tmp_path: Path, heard: Heard) -> None:
    told = warning(tmp_path, heard)
    told.warn(notice())

    told.warn(notice(NoticeKind.WITHDRAWN, seconds=None))

    assert list(tmp_path.iterdir()) == []
    assert [json.loads(each)["kind"] for each in heard.sent] == ["interruption", "withdrawn"]
    assert told.standing() is None


def test_who_comes_later_is_told_what_stands_with_the_seconds_left_by_then(
    tmp_path: Path, heard: Heard
) -> None:
    told = warning(tmp_path, heard)
    told.warn(notice(seconds=100))
    time.sleep(0.05)

    standing = told.standing()

    assert standing is not None
    assert json.loads(standing)["seconds_left"] < json.loads(heard.sent[0])["seconds_left"]


def test_readers_never_see_half_a_file(tmp_path: Path, heard: Heard) -> None:
    told, done = warning(tmp_path, heard), threading.Event()
    told.warn(notice())

    def write() -> None:
        for _ in range(300):
            told.warn(notice())
        done.set()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    while not done.is_set():
        assert json.loads((tmp_path / "notice.json").read_text())["source"] == "aws"
    for writer in writers:
        writer.join()
    assert set(heard.problems) == {""}


def test_restart_removes_what_an_earlier_run_left(tmp_path: Path, heard: Heard) -> None:
    earlier = warning(tmp_path, heard)
    earlier.warn(notice())
    earlier.checkpoint(seconds_left=None, interval_s=60)

    restarted = warning(tmp_path, heard)
    restarted.clear_request()
    assert [file.name for file in tmp_path.iterdir()] == ["notice.json"]  # it may still stand
    restarted.clear_notice()

    assert list(tmp_path.iterdir()) == []


def test_a_notice_that_stands_is_not_cleared(tmp_path: Path, heard: Heard) -> None:
    told = warning(tmp_path, heard)
    told.warn(notice())

    told.clear_notice()

    assert [file.name for file in tmp_path.iterdir()] == ["notice.json"]


def test_request_to_save_goes_to_file_socket_and_signal(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    warning(tmp_path, heard, to=usr1(job.pid)).checkpoint(seconds_left=90.0, interval_s=None)

    document = json.loads((tmp_path / "checkpoint.json").read_text())
    assert document.pop("time_unix_ms") == pytest.approx(time.time() * 1000, abs=60_000)
    assert document == {"kind": "checkpoint", "seconds_left": 90.0, "interval_s": None}
    assert json.loads(heard.sent[0])["kind"] == "checkpoint"
    assert job.wait(10) == signal.SIGUSR1


def test_request_to_save_leaves_the_standing_notice(tmp_path: Path, heard: Heard) -> None:
    told = warning(tmp_path, heard)
    told.warn(notice())

    told.checkpoint(seconds_left=None, interval_s=300.0)

    assert json.loads((tmp_path / "notice.json").read_text())["kind"] == "interruption"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf")])
def test_request_with_absurd_seconds_is_still_json(
    tmp_path: Path, heard: Heard, seconds: float
) -> None:
    warning(tmp_path, heard).checkpoint(seconds_left=seconds, interval_s=seconds)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads(heard.sent[0], parse_constant=refuse)
    assert (document["seconds_left"], document["interval_s"]) == (None, None)


def test_interruption_signals_those_that_report_and_those_in_the_file(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    with subprocess.Popen([sys.executable, "-c", _JOB], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        pid_file = tmp_path / "job.pid"
        pid_file.write_text(f"{job.pid}\n\n")

        warning(tmp_path, heard, to=usr1(other.pid, file=pid_file)).warn(notice())

        assert (job.wait(10), other.wait(10)) == (signal.SIGUSR1, signal.SIGUSR1)
    assert heard.problems == [""]


@pytest.mark.parametrize("kind", [NoticeKind.HINT, NoticeKind.WITHDRAWN])
def test_what_is_not_certain_sends_no_signal(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]", kind: NoticeKind
) -> None:
    warning(tmp_path, heard, to=usr1(job.pid)).warn(notice(kind))

    os.kill(job.pid, signal.SIGTERM)  # of two that wait, sigwait takes the lower number: SIGUSR1
    assert job.wait(10) == signal.SIGTERM


@pytest.mark.parametrize("pid", [0, 1, pytest.param(os.getpid(), id="own")])
def test_groups_the_first_process_and_the_agent_are_never_signalled(
    tmp_path: Path, heard: Heard, pid: int
) -> None:
    file = written(tmp_path / "job.pid", pid)
    # Harmless, should the agent send it after all.
    nothing = JobSignal(number=0, to_reporters=lambda number: {}, pid_file=file)

    warning(tmp_path, heard, to=nothing).warn(notice())

    assert heard.problems == [f"signal to process {pid}: is not a training process"]


def test_process_that_is_gone_is_reported_and_the_others_are_signalled(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    file = written(tmp_path / "job.pid", gone.pid, job.pid)
    warning(tmp_path, heard, to=usr1(file=file)).warn(notice())

    assert job.wait(10) == signal.SIGUSR1
    assert heard.problems == [f"signal to process {gone.pid}: No such process"]


def test_process_of_another_user_is_reported(job: "subprocess.Popen[str]") -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    script = f"""
import os, signal
from pathlib import Path
from spotwright_agent.job_warning import JobSignal, JobWarning
from spotwright_agent.steps.senders import Credentials, StepSenders
os.setuid(65534)
senders = StepSenders()
senders.see(Credentials({job.pid}, 0), None, now_s=0)
signals = JobSignal(number=signal.SIGUSR1, to_reporters=lambda n: senders.signal(n, now_s=0))
JobWarning(Path("/nonexistent/n.json"), send=lambda _: 0, on_problem=print, signal=signals
           ).checkpoint(seconds_left=None, interval_s=None)
"""
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert f"signal to process {job.pid}: Operation not permitted" in ran.stdout
    assert job.poll() is None


def test_process_that_reports_and_is_in_the_file_is_signalled_once(
    tmp_path: Path, heard: Heard
) -> None:
    code = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
print("ready", flush=True)
while (number := signal.sigwait({signal.SIGUSR1, signal.SIGTERM})) == signal.SIGUSR1:
    print("saves", flush=True)
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        reporting = usr1(child.pid, file=written(tmp_path / "job.pid", child.pid))

        def pausing(number: int) -> Mapping[int, str]:
            told = reporting.to_reporters(number)
            assert child.stdout is not None
            assert child.stdout.readline() == "saves\n"
            return told

        to = JobSignal(number=reporting.number, to_reporters=pausing, pid_file=reporting.pid_file)
        warning(tmp_path, heard, to=to).warn(notice())
        child.terminate()

        assert child.stdout.read() == ""


@pytest.mark.parametrize(("owner", "is_signalled"), [(0, True), (1234, False)])
def test_file_speaks_for_the_processes_of_its_owner_and_that_of_root_for_all(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]", owner: int, is_signalled: bool
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    other = subprocess.Popen(["sleep", "60"], user=1234)
    file = written(tmp_path / "job.pid", job.pid, other.pid)
    os.chown(file, owner, owner)

    warning(tmp_path, heard, to=usr1(file=file)).warn(notice())

    assert other.wait(10) == -signal.SIGUSR1
    if is_signalled:
        assert job.wait(10) == signal.SIGUSR1
        assert heard.problems == [""]
        return
    why = "belongs to user 0, the file that names it to user 1234"
    assert heard.problems == [f"signal to process {job.pid}: {why}"]
    os.kill(job.pid, signal.SIGTERM)  # of two that wait, sigwait takes the lower number: SIGUSR1
    assert job.wait(10) == signal.SIGTERM


def test_process_that_came_after_the_file_is_another_and_not_signalled(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    file = written(tmp_path / "job.pid", job.pid)
    before_s = time.time() - 60
    os.utime(file, (before_s, before_s))

    warning(tmp_path, heard, to=usr1(file=file)).warn(notice())

    why = "started after the file that names it was written"
    assert heard.problems == [f"signal to process {job.pid}: {why}"]
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait(10) == signal.SIGTERM


@pytest.mark.parametrize("way", ["link", "everybody"])
def test_file_that_somebody_else_may_have_filled_signals_nobody(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]", way: str
) -> None:
    file = written(tmp_path / "others.pid", job.pid)
    if way == "link":
        (tmp_path / "job.pid").symlink_to(file)
    else:
        file.rename(tmp_path / "job.pid").chmod(0o666)

    warning(tmp_path, heard, to=usr1(file=tmp_path / "job.pid")).warn(notice())

    assert heard.problems[0].startswith("pid file: ")
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait(10) == signal.SIGTERM


@pytest.mark.parametrize("text", ["-1\n", "12 x\n", "1e3", "\0", "9" * 40, "²"])
def test_pid_file_with_something_else_signals_nobody_in_it(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]", text: str
) -> None:
    pid_file = tmp_path / "job.pid"
    pid_file.write_text(text)

    warning(tmp_path, heard, to=usr1(job.pid, file=pid_file)).warn(notice())

    assert "must have one process number a line" in heard.problems[0]
    assert job.wait(10) == signal.SIGUSR1


def test_other_lines_of_a_pid_file_are_left_alone(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    pid_file = written(tmp_path / "job.pid", job.pid)
    pid_file.write_text(f"# of the job\n-1\n{job.pid} x\n{job.pid}\n")

    warning(tmp_path, heard, to=usr1(file=pid_file)).warn(notice())

    assert job.wait(10) == signal.SIGUSR1


def test_pid_file_that_is_a_pipe_does_not_hold_the_agent(tmp_path: Path, heard: Heard) -> None:
    os.mkfifo(tmp_path / "job.pid")

    warning(tmp_path, heard, to=usr1(file=tmp_path / "job.pid")).warn(notice())

    assert "is not a file" in heard.problems[0]


def test_pid_file_that_is_not_there_yet_is_no_problem(tmp_path: Path, heard: Heard) -> None:
    warning(tmp_path, heard, to=usr1(file=tmp_path / "job.pid")).warn(notice())

    assert heard.problems == [""]


def test_folder_that_is_gone_does_not_stop_socket_and_signal(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    told = warning(tmp_path / "gone", heard, to=usr1(job.pid))

    told.warn(notice())

    assert heard.problems == ["file: No such file or directory"]
    assert len(heard.sent) == 1
    assert told.standing() is not None
    assert job.wait(10) == signal.SIGUSR1


def test_draft_that_is_a_link_is_not_followed(tmp_path: Path, heard: Heard) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".notice.json.tmp").symlink_to(victim)

    warning(tmp_path, heard).warn(notice())

    assert victim.read_text() == "mine"


def test_socket_and_process_list_that_fail_do_not_stop_the_rest(
    tmp_path: Path, heard: Heard, job: "subprocess.Popen[str]"
) -> None:
    closed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    closed.close()

    def broken(number: int) -> Mapping[int, str]:
        raise RuntimeError("no list")

    pid_file = tmp_path / "job.pid"
    pid_file.write_text(str(job.pid))
    told = JobWarning(
        tmp_path / "notice.json",
        send=closed.send,
        on_problem=heard.problems.append,
        signal=JobSignal(number=signal.SIGUSR1, to_reporters=broken, pid_file=pid_file),
    )

    told.warn(notice())

    assert heard.problems == ["socket: Bad file descriptor; signal: RuntimeError: no list"]
    assert (tmp_path / "notice.json").exists()
    assert job.wait(10) == signal.SIGUSR1
