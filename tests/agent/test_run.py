"""The agent as a process: its start, its end, and what it shows of itself."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.agent.agent_process import PATIENCE_S, AgentProcess, running_agent
from tests.ports import stable_port

_NOBODY = "127.0.0.1:1"  # a daemon that is away


def _told(notify: socket.socket) -> str:
    return notify.recv(4096).decode()


def test_the_service_manager_is_told_ready_alive_and_stopping(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind("")  # a name that the kernel chooses
        notify.settimeout(PATIENCE_S)
        name = "@" + notify.getsockname()[1:].decode()
        environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"}
        with running_agent(tmp_path, "--daemon", _NOBODY, environment=environment) as agent:
            first, second = _told(notify), _told(notify)
            code = agent.stop()
            rest = [second]
            while "STOPPING=1" not in rest[-1]:
                rest.append(_told(notify))

    assert first.startswith("READY=1\nSTATUS=samples for 127.0.0.1:1")
    assert second == "WATCHDOG=1"
    assert code == 0


def test_a_second_agent_on_one_folder_ends_in_one_line(tmp_path: Path) -> None:
    with running_agent(tmp_path, "--daemon", _NOBODY) as first:
        until = time.monotonic() + PATIENCE_S
        while not (tmp_path / "spool.db").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        with running_agent(tmp_path, "--daemon", _NOBODY) as second:
            code = second.wait()
            assert first.is_running()

    assert code == 1
    assert len(second.log) == 1
    assert "another agent" in second.log[0]


@pytest.mark.parametrize(
    "told", [("--daemon", "10.0.0.1:7443"), ("--probe-listen", "10.0.0.1:7444")]
)
def test_settings_that_cannot_be_used_end_the_start_in_one_line(
    tmp_path: Path, told: tuple[str, str]
) -> None:
    program = str(Path(sys.executable).with_name("spotwright-agent"))
    flags = ["--config", os.devnull, "--state-dir", str(tmp_path), *told]

    done = subprocess.run(
        [program, "run", *flags], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "10.0.0.1" in done.stderr


def test_metrics_show_the_agents_own_figures(tmp_path: Path) -> None:
    address = f"127.0.0.1:{stable_port()}"
    flags = ["--daemon", _NOBODY, "--metrics", address]
    with running_agent(tmp_path, *flags) as agent:
        families = {}
        until = time.monotonic() + PATIENCE_S
        while "spotwright_agent_sample_lag_seconds" not in families:
            assert time.monotonic() < until, agent.log
            time.sleep(0.1)
            families = _families(address)

    assert families["spotwright_agent_session_connected"] == 0
    assert 0 < families["spotwright_agent_process_resident_memory_bytes"] < 200e6
    assert families["spotwright_agent_spool_dropped_samples"] == 0


def _families(address: str) -> dict[str, float]:
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
            text = page.read().decode()
    except OSError:
        return {}
    found = text_string_to_metric_families(text)
    return {family.name: family.samples[0].value for family in found}


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_an_older_notice_stays_until_it_is_known_whether_it_stands(tmp_path: Path) -> None:
    silent = ["--cloud", "aws", "--metadata-url", "http://127.0.0.1:1"]
    agent = AgentProcess(tmp_path, "--daemon", _NOBODY, *silent)
    try:
        agent.notice_path.write_text("{}")
        agent.start()
        _until(lambda: any("notices of the cloud are not known" in line for line in agent.log))
        agent.stop()
        assert agent.notice_path.exists()

        agent.flags = ("--daemon", _NOBODY, "--cloud", "none")
        agent.start()
        _until(lambda: not agent.notice_path.exists())
    finally:
        agent.stop()
        agent.forget()


def test_a_port_that_is_taken_is_a_fault_in_a_line_each_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flags = ["--daemon", _NOBODY, "--metrics", f"127.0.0.1:{taken.getsockname()[1]}"]
        with running_agent(tmp_path, *flags) as agent:
            _until(lambda: sum("metrics failed: " in line for line in agent.log) == 2)

    assert "Traceback" not in "\n".join(agent.log)
