"""What the agent costs training that keeps every CPU of its host busy.

The same real training steps, each told to the agent, with the agent at work and with it frozen,
block by block in turn. Nothing is emulated: PyTorch computes on all CPUs, so what the agent takes
is missing there. The agents of the other hosts stand still meanwhile: each has its own machine in
truth.
"""

import os
import signal
import time
from multiprocessing.connection import Connection
from statistics import mean, stdev

import torch
from torch import nn

from benchmarks.table import Row, print_rows
from lab.hosts import HostProcess
from lab.setting import Setting
from spotwright_agent.training import StepReporter

_PAIRS, _BLOCK_S = 12, 4.0
_WIDTH, _BATCH = 768, 128
_TARGET_FRACTION = 0.01
_T95 = 2.2  # Student's t of eleven degrees of freedom


def measure_agent_overhead(setting: Setting) -> None:
    """Real training steps with the host's agent at work, and with it frozen."""
    others = [agent for name, agent in setting.agents.items() if name != "w1"]
    mine, training = setting.agents["w1"], HostProcess(setting.lab.hosts["w1"], _train_in_blocks)
    ratios = []
    try:
        _send(signal.SIGSTOP, *others)
        training.receive()
        for _ in range(_PAIRS):
            _send(signal.SIGSTOP, mine)
            alone_s = training.receive()
            _send(signal.SIGCONT, mine)
            ratios.append(training.receive() / alone_s - 1)
    finally:
        _send(signal.SIGCONT, mine, *others)
        training.kill()
    middle, margin = mean(ratios), _T95 * stdev(ratios) / len(ratios) ** 0.5
    row = Row(
        what="what the agent adds to a step",
        figure=f"{middle:+.2%} (95 %: {middle - margin:+.2%} to {middle + margin:+.2%})",
        target=f"<= {_TARGET_FRACTION:.0%}",
        is_met=middle <= _TARGET_FRACTION,
    )
    print_rows("Agent beside training that uses every CPU", [row])


def _send(signal_number: int, *agents: HostProcess) -> None:
    for agent in agents:
        assert agent.process.pid is not None
        os.kill(agent.process.pid, signal_number)


def _train_in_blocks(pipe: Connection) -> None:
    """Send the mean seconds of a step in each block, for ever."""
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(_WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 10))
    optimizer, loss_of = torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()
    inputs, targets = torch.randn(_BATCH, _WIDTH), torch.randint(10, (_BATCH,))
    reporter, step = StepReporter(), 0
    while True:
        began_s, first = time.perf_counter(), step
        while (passed_s := time.perf_counter() - began_s) < _BLOCK_S:
            optimizer.zero_grad()
            loss_of(model(inputs), targets).backward()
            optimizer.step()
            step += 1
            reporter.step(step, samples=_BATCH)
        pipe.send(passed_s / (step - first))
