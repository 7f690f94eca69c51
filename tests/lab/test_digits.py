"""The digits of the laboratory: the same for everybody, and learnable."""

import torch

from lab.digits import CLASSES, digits_task, draw_digits
from lab.emulated_gpu import Device

NO_WAIT = Device(name="none", fixed_s=0.0, per_sample_s=1e-9, jitter_fraction=0.0)


def test_the_same_dice_draw_the_same_digits() -> None:
    once = draw_digits(200, torch.Generator().manual_seed(3))
    again = draw_digits(200, torch.Generator().manual_seed(3))

    assert torch.equal(once[0], again[0])
    assert torch.equal(once[1], again[1])
    assert once[0].shape == (200, 64)
    assert set(once[1].tolist()) == set(range(CLASSES))


def test_hosts_begin_alike_and_draw_digits_of_their_own() -> None:
    here, there = (digits_task(NO_WAIT, learning_rate=0.2, seed=5) for _ in range(2))

    for ours, theirs in zip(here.model.parameters(), there.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert not torch.equal(next(here.data("w1", 8))[0], next(there.data("w2", 8))[0])


def test_a_network_learns_them() -> None:
    task = digits_task(NO_WAIT, learning_rate=0.2, seed=5)
    inputs, targets = draw_digits(500, torch.Generator().manual_seed(1))

    def loss() -> float:
        return float(task.loss(task.model(inputs), targets).detach())

    before = loss()
    for _, (images, classes) in zip(range(400), task.data("w1", 64), strict=False):
        task.optimizer.zero_grad()
        task.loss(task.model(images), classes).backward()
        task.optimizer.step()

    assert loss() < 0.6 * before
