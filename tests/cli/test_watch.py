"""`spotwright watch`, run as a user runs it: in a pipe, on a terminal, through a restart."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from spotwright.cli.live_view import LiveSink
from spotwright.cli.watch_sinks import LineSink
from spotwright.client.agent_calls import agent_from_proto
from spotwright.domain.job_run import Event, JobState, NewEvent
from tests.cli.command import SPOTWRIGHT, clean_environment, spotwright
from tests.cli.live_command import PATIENCE_S, running, wait_for
from tests.cli.small_daemon import SmallDaemon, busy_agent, quiet_agent
from tests.usecases.example_job_run import START, after, job_run

JOB = "job-1"


@pytest.fixture
def daemon() -> Iterator[SmallDaemon]:
    with SmallDaemon(busy_agent("gpu-1", job_id=JOB), quiet_agent("gpu-2")) as daemon:
        daemon.store.add_job(job_run(JOB), [NewEvent(time=START, kind="job-created", text="made")])
        yield daemon


def log(daemon: SmallDaemon, kind: str) -> None:
    event = NewEvent(time=START, kind=kind, text="")
    daemon.store.change_job(JOB, lambda job: (job, [event]))


def end(daemon: SmallDaemon) -> None:
    event = NewEvent(time=START, kind="job-stopped", text="")
    daemon.store.change_job(JOB, lambda job: (replace(job, state=JobState.STOPPED), [event]))


def test_in_a_pipe_each_change_is_a_line_until_the_job_has_ended(daemon: SmallDaemon) -> None:
    with running("watch", JOB, "--daemon", daemon.address) as watch:
        wait_for(watch.stdout, "job-created")
        log(daemon, "agent-silent")
        wait_for(watch.stdout, "agent-silent")
        end(daemon)
        out, told = watch.communicate()

    assert (watch.returncode, told) == (0, "")
    lines = out.splitlines()
    assert "job-stopped" in lines[0]
    assert lines[-1].endswith(f"{JOB} stopped, progress -")


def test_json_is_one_document_a_line(daemon: SmallDaemon) -> None:
    end(daemon)

    done = spotwright("watch", JOB, "--json", "--daemon", daemon.address)

    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    updates = [update for update in found if "agents" not in update]
    assert [next(iter(update)) for update in updates] == ["job", "event", "event"]
    assert updates[0]["job"]["state"] == "stopped"


@pytest.mark.parametrize(
    "arguments", [["watch"], ["watch", JOB], ["jobs", "events", JOB, "--follow"]]
)
def test_ctrl_c_ends_it_cleanly(daemon: SmallDaemon, arguments: list[str]) -> None:
    with running(*arguments, "--daemon", daemon.address) as watch:
        wait_for(watch.stdout, "job-")
        watch.send_signal(signal.SIGINT)
        _, told = watch.communicate()

    assert (watch.returncode, told) == (0, "")


def test_a_restarted_daemon_is_waited_for_and_no_event_is_missed(daemon: SmallDaemon) -> None:
    with running("watch", JOB, "--daemon", daemon.address) as watch:
        wait_for(watch.stdout, "job-created")
        daemon.stop()
        wait_for(watch.stderr, f"lost the daemon at {daemon.address}, trying again")
        log(daemon, "while-it-was-down")
        daemon.start()
        wait_for(watch.stderr, f"the daemon at {daemon.address} answers again")
        wait_for(watch.stdout, "while-it-was-down")
        end(daemon)
        out, told = watch.communicate()

    assert (watch.returncode, told) == (0, "")
    assert "job-created" not in out


def test_a_daemon_that_never_answered_is_an_error(daemon: SmallDaemon) -> None:
    done = spotwright("watch", "--daemon", "127.0.0.1:1")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no daemon answers at 127.0.0.1:1 ")


def test_a_job_that_is_not_there_is_bad_input(daemon: SmallDaemon) -> None:
    done = spotwright("watch", "job-9", "--daemon", daemon.address)

    assert (done.returncode, done.stderr) == (2, "error: no job 'job-9'\n")


def test_a_terminal_is_redrawn_and_left_in_order(daemon: SmallDaemon) -> None:
    ours, theirs = pty.openpty()
    environment = clean_environment(COLUMNS="200", LINES="40")
    watch = subprocess.Popen(
        [SPOTWRIGHT, "watch", JOB, "--daemon", daemon.address],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment,
    )
    os.close(theirs)
    seen = b""
    while b"gpu-1" not in seen or b"job-created" not in seen:
        seen += os.read(ours, 65536)
    end(daemon)
    while chunk := _read(ours):
        seen += chunk
    os.close(ours)
    _, told = watch.communicate(timeout=PATIENCE_S)

    assert (watch.returncode, told) == (0, b"")
    assert b"62%" in seen
    assert b"job-1 stopped" in seen
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")  # the cursor is back


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux tells that nobody has the other side any more
        return b""


def test_the_picture_fits_the_terminal_however_many_agents_there_are() -> None:
    console = Console(file=StringIO(), width=200, height=30, force_terminal=True)
    sink = LiveSink(console)
    sink.take_agents([agent_from_proto(busy_agent(f"gpu-{i:03}")) for i in range(500)])
    sink.take_jobs([job_run(f"job-{i}") for i in range(100)])
    sink.tell("lost the daemon")

    lines = console.render_lines(sink.picture(after(60)))

    shown = ["".join(segment.text for segment in line).strip() for line in lines]
    assert len(shown) <= 30
    assert any(line.startswith("agents: 500, ") for line in shown)
    assert any(line.startswith("jobs that have not ended: 100, ") for line in shown)
    assert shown[-1].endswith("lost the daemon")


@pytest.mark.parametrize("width", [80, 100, 120])
def test_in_a_narrow_terminal_what_one_watches_for_is_whole(width: int) -> None:
    console = Console(file=StringIO(), width=width, height=30)
    sink = LiveSink(console)
    sink.take_agents([agent_from_proto(busy_agent(f"i-0123456789abcdef{i}")) for i in range(3)])

    console.print(sink.picture(after(60)))

    out = console.file
    assert isinstance(out, StringIO)
    for whole in ("i-0123456789abcdef2", "62%", "1.00 / 0.50", "1.50 / 0.50", "500 ms", "hint"):
        assert whole in out.getvalue()


def test_the_picture_of_a_job_has_its_latest_events() -> None:
    console = Console(file=StringIO(), width=200, height=30)
    sink = LiveSink(console)
    sink.take_job(job_run(JOB))
    for i in range(20):
        sink.take_event(Event(time=START, kind=f"kind-{i}", text="", sequence=i + 1))

    console.print(sink.picture(after(60)))

    out = console.file
    assert isinstance(out, StringIO)
    assert "kind-19" in out.getvalue()
    assert "kind-11" not in out.getvalue()


def test_agents_get_a_line_when_they_come_go_or_get_a_notice_not_for_each_figure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    agent = replace(agent_from_proto(busy_agent("gpu-1")), notice="")
    sink = LineSink()
    for update in (
        agent,
        replace(agent, step_s=0.7),
        replace(agent, notice="interruption"),
        replace(agent, connected=False),
    ):
        sink.take_agents([update])

    assert capsys.readouterr().out.splitlines() == [
        "agent gpu-1 (g5.xlarge) connected",
        "agent gpu-1 (g5.xlarge) connected, interruption notice",
        "agent gpu-1 (g5.xlarge) away",
    ]
