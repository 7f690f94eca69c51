"""Steps of real PyTorch loops on the CPU, one process and two."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from spotwright_agent.training import StepReporter
from spotwright_agent.training.torch_hook import report_steps, timed_batches
from tests.agent.step_agent import listening_agent, short_path, wait_for


@pytest.fixture
def path() -> Iterator[Path]:
    with short_path() as found:
        yield found


def train(model: torch.nn.Module, reporter: StepReporter, *, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hook = report_steps(optimizer, reporter, samples_per_step=4, model=model, first_step=100)
    loader = DataLoader(TensorDataset(torch.randn(4 * steps, 8)), batch_size=4)
    batches = timed_batches(loader, reporter)
    assert len(batches) == steps
    for (inputs,) in batches:
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
    hook.remove()
    optimizer.step()


def test_each_step_of_the_optimizer_is_told_with_its_wait_for_input(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        train(torch.nn.Linear(8, 2), reporter, steps=12)
        reporter.close()
        wait_for(lambda: len(agent.steps) == 12)

    assert [step.step for step in agent.steps] == list(range(100, 112))
    assert all(step.samples == 4 for step in agent.steps)
    assert all(0 < (step.data_wait_s or 0) <= step.step_s for step in agent.steps)
    assert all(step.communication_s is None for step in agent.steps)


def one_rank(rank: int, path: str, store: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    reporter = StepReporter(path, rank=rank)
    train(DistributedDataParallel(torch.nn.Linear(8, 2)), reporter, steps=15)
    reporter.close()
    distributed.destroy_process_group()


def test_what_ddp_measures_of_itself_is_told_by_each_rank(path: Path, tmp_path: Path) -> None:
    with listening_agent(path) as agent:
        spawn(one_rank, (str(path), str(tmp_path / "store")), nprocs=2)
        wait_for(lambda: len(agent.steps) == 30)

    for rank in (0, 1):
        told = [step for step in agent.steps if step.rank == rank]
        assert [step.step for step in told] == list(range(100, 115))
        measured = [step for step in told if step.communication_s is not None]
        assert [step.step for step in measured] == [110]
        assert measured[0].communication_s >= 0  # type: ignore[operator]
        assert measured[0].compute_s > 0  # type: ignore[operator]


class Overlapping(torch.nn.Linear):
    """Says what DistributedDataParallel says where exchange and backward pass overlap."""

    def _get_ddp_logging_data(self) -> dict[str, int]:
        return {
            "iteration": 10,
            "forward_compute_time": 300_000_000,
            "backward_compute_time": 600_000_000,
            "backward_comm_time": 600_000_000,
            "backward_compute_comm_overlap_time": 500_000_000,
        }


def test_only_communication_that_computing_does_not_hide_is_told(path: Path) -> None:
    with listening_agent(path) as agent:
        reporter = StepReporter(str(path))
        train(Overlapping(8, 2), reporter, steps=12)
        reporter.close()
        wait_for(lambda: len(agent.steps) == 12)

    told = [(step.compute_s, step.communication_s) for step in agent.steps if step.compute_s]
    assert told == [(0.9, 0.1)]
