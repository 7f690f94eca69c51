"""The all-reduce recipe: uneven splits, gradients of the joint batch, and resuming."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, distributed, nn

from spotwright.domain.errors import BatchError
from spotwright.train.checkpoint_places import FolderPlace
from spotwright.train.ddp import ElasticDdp, split_batch
from spotwright.train.script import Task
from tests.train.role_process import ROOT, SCRIPT
from tests.train.small_training import batch, build_model, parameters, sgd


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=9), st.integers(9, 500))
def test_a_split_has_every_sample_and_follows_the_speeds(speeds: list[float], size: int) -> None:
    split = split_batch(size, speeds)

    assert sum(split) == size
    assert min(split) >= 1
    left = size - len(speeds)
    wanted = [1 + left * speed / sum(speeds) for speed in speeds]
    assert all(abs(got - want) < 1 for got, want in zip(split, wanted, strict=True))


def test_more_processes_than_samples_are_refused() -> None:
    with pytest.raises(BatchError, match="a batch of 2 for 3 processes"):
        split_batch(2, [1.0, 1.0, 1.0])


SIZES = (5, 3)  # of rank 0 and 1, whose batches are of another size than the split says


def data(worker: str, _size: int):  # type: ignore[no-untyped-def]
    rank, start = (int(part) for part in worker.removeprefix("rank").split("."))
    for step in range(start, 100):
        yield rows(rank, step)


def rows(rank: int, step: int) -> tuple[Tensor, Tensor]:
    return batch(10 * step + rank, SIZES[rank])


def train_rank(rank: int, folder: str, pipe: Any) -> None:
    torch.set_num_threads(1)
    for steps in (4, 7):  # the second time it goes on from the checkpoint
        where = f"file://{folder}/store-{steps}"
        distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=2)
        model = build_model()
        task = Task(model, sgd(model), nn.CrossEntropyLoss(), data)
        training = ElasticDdp(task, batch=8, place=FolderPlace(Path(folder)))
        began = training.step_number
        training.run(steps=steps, every=2)
        distributed.destroy_process_group()
    pipe.send((began, training.step_number, parameters(model).numpy()))


def test_two_processes_make_the_steps_of_the_joint_batch_and_resume(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    processes = [
        context.Process(target=train_rank, args=(rank, str(tmp_path), theirs)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    results = [ours.recv() for _ in processes if ours.poll(90)]
    for process in processes:
        process.join()

    oracle = build_model()
    optimizer = sgd(oracle)
    for step in range(7):
        first, second = rows(0, step), rows(1, step)
        inputs, targets = torch.cat([first[0], second[0]]), torch.cat([first[1], second[1]])
        optimizer.zero_grad()
        nn.functional.cross_entropy(oracle(inputs), targets).backward()
        optimizer.step()
    assert [(began, ended) for began, ended, _ in results] == [(4, 7), (4, 7)]
    for _, _, found in results:
        torch.testing.assert_close(
            torch.from_numpy(found), parameters(oracle), rtol=1e-4, atol=1e-6
        )


def test_torchrun_does_not_start_anew_what_no_restart_mends() -> None:
    run = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "3",
            "-m", "spotwright.train.ddp", f"{SCRIPT}:build_all_spoiled",
            "--batch", "8", "--steps", "3",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )  # fmt: skip

    assert run.returncode != 0
    assert run.stderr.count("error: loss is nan on worker rank0 at step 1") == 1
