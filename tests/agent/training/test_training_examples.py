"""The examples, run as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.step_agent import listening_agent, short_path, wait_for

_EXAMPLES = Path(__file__).parents[3] / "examples/training"


@pytest.mark.parametrize(("name", "count"), [("plain.py", 5), ("pytorch.py", 16)])
def test_an_example_tells_its_steps(name: str, count: int) -> None:
    with short_path() as path, listening_agent(path) as agent:
        environment = {**os.environ, "SPOTWRIGHT_AGENT_SOCKET": str(path)}
        command = [sys.executable, str(_EXAMPLES / name)]
        told = subprocess.check_output(command, env=environment, text=True, timeout=100)
        wait_for(lambda: len(agent.steps) == count)
    assert told == f"{count} steps, 0 of them not told. \n"
