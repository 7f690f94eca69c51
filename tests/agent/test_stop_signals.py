"""Signals that ask a process to stop."""

import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_while_the_event_is_locked_stops_the_process(number: int) -> None:
    code = f"""
import signal
from spotwright_agent.stop_signals import event_of_stop_signals
stopping = event_of_stop_signals()
with stopping._cond:  # as in a wait that begins or ends
    signal.raise_signal({int(number)})
print(stopping.wait(60))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
