"""Training by servers and workers, against the same steps in plain PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from spotwright.domain.workload import Strategy
from spotwright.train import Worker
from tests.train.small_training import (
    CLASSES,
    FEATURES,
    backward,
    build_model,
    parameters,
    sgd,
    small_job,
    together,
)


def adam(model: nn.Module) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": [model.get_parameter("0.weight")], "weight_decay": 0.1},
        {"params": [p for name, p in model.named_parameters() if name != "0.weight"]},
    ]
    return torch.optim.AdamW(groups, lr=0.01)


class WholeTensorSgd(torch.optim.SGD):
    """Not known to look at single elements: its tensors are not cut."""


def whole(model: nn.Module) -> torch.optim.Optimizer:
    return WholeTensorSgd(model.parameters(), lr=0.05)


@pytest.mark.parametrize("optimizer", [sgd, adam, whole])
@pytest.mark.parametrize("count", [1, 2])
def test_asynchronous_training_is_the_same_updates_in_the_order_they_came(
    optimizer: Callable[[nn.Module], torch.optim.Optimizer], count: int
) -> None:
    pushed: dict[tuple[str, int], list[torch.Tensor]] = {}

    def train(worker: Worker, model: nn.Module, seed: int) -> None:
        with worker:
            for step in range(15):
                loss = backward(model, seed + step)
                gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
                pushed[worker.name, step + 1] = gradients
                worker.exchange(loss=loss, batch=8)

    with small_job(count=count, optimizer=optimizer) as job:
        models = [build_model() for _ in range(3)]
        workers = [job.worker(f"w{i}", model) for i, model in enumerate(models)]
        tasks = [
            lambda w=w, m=m, s=100 * i: train(w, m, s)
            for i, (w, m) in enumerate(zip(workers, models, strict=True))
        ]
        with together(*tasks):
            pass
        served, orders = job.parameters(), job.updates

    if count > 1:  # each server has an order of its own: a part of each oracle
        assert all(len(order) == 45 for order in orders)
    oracles = []
    for order in orders:
        oracle = build_model()
        steps = optimizer(oracle)
        for update in order:
            for parameter, gradient in zip(
                oracle.parameters(), pushed[update.worker, update.sequence], strict=True
            ):
                parameter.grad = gradient.clone()
            steps.step()
        oracles.append(parameters(oracle))
    matches = torch.stack([torch.isclose(served, o, atol=1e-6) for o in oracles])
    assert bool(matches.any(dim=0).all())
    if count == 1:
        assert torch.equal(served, oracles[0])


@pytest.mark.parametrize("count", [1, 2])
def test_a_round_is_one_step_on_the_joint_batch(count: int) -> None:
    sizes = [4, 8, 20]

    def train(worker: Worker, model: nn.Module, index: int) -> None:
        with worker:
            for step in range(12):
                loss = backward(model, 10 * step + index, sizes[index])
                told = worker.exchange(loss=loss, batch=sizes[index])
                assert (told.version, told.applied, told.staleness) == (step + 1, True, 0)

    with small_job(Strategy.BSP_PS, count=count, begin_with=3) as job:
        models = [build_model() for _ in sizes]
        workers = [job.worker(f"w{i}", model) for i, model in enumerate(models)]
        with together(
            lambda: train(workers[0], models[0], 0),
            lambda: train(workers[1], models[1], 1),
            lambda: train(workers[2], models[2], 2),
        ):
            pass
        served = job.parameters()

    oracle = build_model()
    optimizer = sgd(oracle)
    for step in range(12):
        optimizer.zero_grad()
        for index, size in enumerate(sizes):
            part = build_model()
            part.load_state_dict(oracle.state_dict())
            backward(part, 10 * step + index, size)
            for ours, theirs in zip(oracle.parameters(), part.parameters(), strict=True):
                assert theirs.grad is not None
                share = theirs.grad * (size / sum(sizes))
                ours.grad = share if ours.grad is None else ours.grad + share
        optimizer.step()
    torch.testing.assert_close(served, parameters(oracle), rtol=1e-5, atol=1e-6)


def test_staleness_counts_the_updates_between_pull_and_push() -> None:
    with small_job() as job:
        first, second = build_model(), build_model()
        with job.worker("a", first) as a, job.worker("b", second) as b:
            told = [a.exchange(loss=backward(first, i), batch=8).staleness for i in range(4)]
            told.append(b.exchange(loss=backward(second, 9), batch=8).staleness)
            told.append(a.exchange(loss=backward(first, 5), batch=8).staleness)

    assert told == [0, 0, 0, 0, 4, 1]
    assert [update.staleness for update in job.updates[0]] == told


def normalised() -> nn.Module:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(FEATURES, 6), nn.BatchNorm1d(6), nn.Linear(6, CLASSES))
    model[2].bias.requires_grad_(False)
    return model


def test_statistics_and_frozen_parameters_reach_a_worker_that_joins() -> None:
    with small_job(build=normalised) as job:
        trained = normalised()
        with job.worker("a", trained) as worker:
            for step in range(3):
                worker.exchange(loss=backward(trained, step), batch=8)
        other = normalised()
        with torch.no_grad():
            other.get_parameter("2.bias").fill_(9.0)
        with job.worker("b", other):
            state = {name: tensor.clone() for name, tensor in other.state_dict().items()}

    expected = trained.state_dict()
    assert state["1.num_batches_tracked"].item() == 3
    assert all(torch.equal(tensor, expected[name]) for name, tensor in state.items())
