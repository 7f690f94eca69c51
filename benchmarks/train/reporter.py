"""What telling the agent of a step adds to the step."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from benchmarks.table import Row, print_rows
from benchmarks.train.job_processes import build
from spotwright.train import ParameterServer, Worker
from spotwright.train.training_loop import TrainingLoop
from spotwright_agent.training import StepReporter
from tests.agent.agent_process import running_agent

STEPS, LIMIT_FRACTION = 300, 0.01


def print_reporter() -> None:
    """Print how long steps take with a reporter, and how much of it is the reporter's."""
    torch.set_num_threads(1)
    served, trained = build(), build()
    with (
        tempfile.TemporaryDirectory(prefix="sw") as folder,
        running_agent(Path(folder), "--daemon", "127.0.0.1:1") as agent,
        ParameterServer(served.model, served.optimizer) as server,
        Worker(trained.model, [str(server.address)], name="w") as worker,
    ):
        reporter = StepReporter(str(agent.socket_path))
        loop = TrainingLoop(trained, worker, batch=16, reporter=reporter)
        steps_s = _timed(lambda _: loop.step())
        calls_s = _timed(lambda n: reporter.step(n, samples=16, loss=1.0, compute_s=0.01))
        dropped = reporter.dropped
        reporter.close()
    share = median(calls_s) / median(steps_s)
    print_rows(
        f"StepReporter in {STEPS} steps, with an agent",
        [
            Row(what="step", figure=f"{median(steps_s) * 1e3:.2f} ms"),
            Row(
                what="of it the reporter",
                figure=f"{median(calls_s) * 1e6:.0f} us, {share:.2%}",
                target=f"<= {LIMIT_FRACTION:.0%}",
                is_met=share <= LIMIT_FRACTION,
            ),
            Row(what="steps that the agent was not told", figure=str(dropped)),
        ],
    )


def _timed(do: Callable[[int], None]) -> list[float]:
    times_s = []
    for number in range(STEPS):
        started_s = time.perf_counter()
        do(number)
        times_s.append(time.perf_counter() - started_s)
    return times_s
