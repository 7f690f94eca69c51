"""A real agent signals the process that reports its steps when the cloud takes the host."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.agent.agent_process import running_agent
from tests.agent.step_agent import wait_for
from tests.fakes.metadata_server import metadata_server
from tests.ports import stable_port

# Reports for ever; the signal ends it.
_JOB = """
import socket, sys, time
reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
while True:
    reports.sendto(b'{"step": 1, "step_s": 0.1}', sys.argv[1])
    print("told", flush=True)
    time.sleep(0.1)
"""


def test_interruption_signals_the_process_that_reports_steps(tmp_path: Path) -> None:
    with metadata_server("aws") as server:
        flags = ["--cloud", "aws", "--metadata-url", server.url, "--job-signal", "SIGUSR1"]
        flags += ["--daemon", f"127.0.0.1:{stable_port()}"]
        with running_agent(tmp_path / "state", *flags) as agent:
            wait_for(agent.socket_path.is_socket)
            command = [sys.executable, "-c", _JOB, str(agent.socket_path)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
                assert job.stdout is not None
                for _ in range(5):  # by the fifth the first has been read for long
                    assert job.stdout.readline() == "told\n"
                server.interrupt()

                try:
                    assert job.wait(30) == -signal.SIGUSR1
                finally:
                    job.kill()
