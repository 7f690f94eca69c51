"""A worker as a function that ends before its timeout and goes on in its next invocation."""

from pathlib import Path
from typing import Any

import pytest

from spotwright.domain.errors import BadInputError
from spotwright.train.serverless import ServerlessSettings, lambda_handler
from tests.ports import stable_port
from tests.train.role_process import SCRIPT, roles
from tests.train.small_training import small_job
from tests.train.test_processes import server


class Context:
    """What AWS gives a handler, of a function whose time goes by half seconds a question."""

    def __init__(self, timeout_s: float) -> None:
        self._left_s = timeout_s

    def get_remaining_time_in_millis(self) -> int:
        self._left_s -= 0.5
        return int(self._left_s * 1000)


def test_invocations_end_before_the_timeout_and_go_on_where_the_last_one_was(
    tmp_path: Path,
) -> None:
    port = stable_port()
    settings = ServerlessSettings(
        servers=(f"127.0.0.1:{port}",), positions=str(tmp_path / "at"), batch=8, margin_s=30.0
    )
    handle = lambda_handler(f"{SCRIPT}:build", settings)
    with roles() as running:
        running.append(server(port, tmp_path / "ck", steps=60))
        running[0].wait_for(str(port))
        done: list[dict[str, Any]] = []
        lefts: list[int] = []
        while not (done and done[-1]["is_over"]):
            context = Context(42.0)
            done.append(handle({"worker": "f0"}, context))
            lefts.append(context.get_remaining_time_in_millis())
        result = running[0].result()

    steps = [one["steps"] for one in done]
    assert len(done) > 1
    assert sum(steps) == result.updates == 60
    assert [one["position"] for one in done] == [sum(steps[: i + 1]) for i in range(len(steps))]
    assert min(lefts) >= 29_000
    assert max(steps) <= 24


def test_a_function_without_time_for_a_step_makes_none(tmp_path: Path) -> None:
    with small_job() as job:
        settings = ServerlessSettings(servers=tuple(job.addresses), positions=str(tmp_path))
        done = lambda_handler(SCRIPT + ":build", settings)({"worker": "f1"}, Context(30))

    assert (done["steps"], done["position"], done["is_over"]) == (0, 0, False)


def test_functions_that_come_after_the_end_say_so(tmp_path: Path) -> None:
    with small_job(steps=1) as job:
        settings = ServerlessSettings(servers=tuple(job.addresses), positions=str(tmp_path))
        handle = lambda_handler(SCRIPT + ":build", settings)
        told = [handle({"worker": name}, Context(90)) for name in ("f0", "f1")]

    assert [(one["steps"], one["is_over"]) for one in told] == [(1, True), (0, True)]


def test_an_event_that_names_no_worker_is_refused(tmp_path: Path) -> None:
    settings = ServerlessSettings(servers=("127.0.0.1:1",), positions=str(tmp_path))

    with pytest.raises(BadInputError, match="the event names no worker"):
        lambda_handler(SCRIPT, settings)({}, Context(90))
