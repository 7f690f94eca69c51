"""Synchronous all-reduce on an elastic fleet: a recipe for torchrun.

    torchrun --nnodes 1:4 --max-restarts 10 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \\
        -m spotwright.train.ddp SCRIPT --batch 256 --steps 1000 --checkpoint DIR|s3://BUCKET/KEY

torchrun starts all processes anew when one joins or leaves; they go on from the checkpoint. The
batch is that of all processes together and is split by their measured speed, so that mixed GPUs end
a step at the same time. DDP averages gradients over processes as if their batches were equal; each
loss is weighted by processes * own batch / batch, so the result is the gradient of the joint batch.
"""

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from spotwright.domain.errors import BadInputError, BatchError, LossNotFiniteError, TrainingError
from spotwright.train.checkpoint import Checkpoint, check_fits, from_bytes, load_into, to_parts
from spotwright.train.checkpoint_places import CheckpointPlace, open_place, shard_name
from spotwright.train.layout import FlatBuffer, Layout, named_tensors
from spotwright.train.script import Task, batches, load_task, sample_count
from spotwright.train.training_loop import moved
from spotwright_agent.training import StepReporter

_SPLIT_EVERY = 20  # steps between new splits
_NAME = shard_name(0, 1)


def split_batch(batch: int, speeds: Sequence[float]) -> list[int]:
    """Divide a batch in proportion to speeds; each process gets one sample at least.

    Raises:
        BatchError: there are more processes than samples.
    """
    if batch < len(speeds):
        raise BatchError(f"a batch of {batch} for {len(speeds)} processes; each needs a sample")
    left = batch - len(speeds)
    total = sum(speeds)
    exact = [left * speed / total for speed in speeds]
    shares = [int(share) for share in exact]
    by_rest = sorted(range(len(speeds)), key=lambda i: (shares[i] - exact[i], i))
    for i in by_rest[: left - sum(shares)]:
        shares[i] += 1
    return [1 + share for share in shares]


def loss_weight(own: int, *, batch: int, processes: int) -> float:
    """Return the factor of a process's mean loss that makes DDP's average that of all samples."""
    return processes * own / batch


class ElasticDdp:
    """One process of a job that all-reduces."""

    def __init__(
        self,
        task: Task,
        *,
        batch: int,
        place: CheckpointPlace | None,
        reporter: StepReporter | None = None,
    ) -> None:
        """Go on from the checkpoint, if there is one; the process group exists."""
        self.task, self.batch, self._place = task, batch, place
        self.rank, self.processes = distributed.get_rank(), distributed.get_world_size()
        self.device = next(task.model.parameters()).device
        self.split = split_batch(batch, [1.0] * self.processes)
        self.step_number = self._resume()
        self.model = DistributedDataParallel(task.model)
        self._computed_s, self._samples = 0.0, 0
        self._batches = self._drawn_batches()
        self._reporter = reporter or StepReporter(rank=self.rank)

    def run(self, *, steps: int, every: int) -> float:
        """Train up to a step, saving now and then; return the last loss of this process."""
        loss = float("nan")
        while self.step_number < steps:
            loss = self.step()
            if self.step_number % every == 0 or self.step_number == steps:
                self.save()
        self._reporter.close()
        return loss

    def step(self) -> float:
        """Make one step on this process's part of the batch."""
        if self.step_number % _SPLIT_EVERY == 0 and self._samples:
            self._split_by_speed()
        inputs, targets = next(self._batches)
        own = sample_count(inputs)
        started_s = time.perf_counter()
        inputs, targets = moved(inputs, self.device), moved(targets, self.device)
        loss = self.task.loss(self.model(inputs), targets)
        value = loss.item()
        self._computed_s += time.perf_counter() - started_s  # later ones wait for each other
        total = self._total(own, value)
        weight = loss_weight(own, batch=total, processes=self.processes)
        self.task.optimizer.zero_grad()
        (loss * weight).backward()  # type: ignore[no-untyped-call]
        self.task.optimizer.step()
        self._samples += own
        self.step_number += 1
        self._reporter.step(self.step_number, samples=own, loss=value)
        return value

    def save(self) -> None:
        """Have rank 0 keep a checkpoint, and the others wait for it."""
        if self._place is not None and self.rank == 0:
            self._place.write(_NAME, to_parts(self._snapshot()))
        distributed.barrier()

    def _total(self, own: int, loss: float) -> int:
        """Return the samples of all processes: the last batch of an epoch may be smaller.

        Raises:
            LossNotFiniteError: on every process, and of the first whose loss is not.
        """
        told = torch.zeros(self.processes, 2)
        told[self.rank] = torch.tensor([float(own), float(not math.isfinite(loss))])
        distributed.all_reduce(told)
        spoiled = told[:, 1].nonzero().flatten().tolist()
        if spoiled:
            found = loss if self.rank in spoiled else math.nan
            step = self.step_number + 1
            raise LossNotFiniteError(found, worker=f"rank{spoiled[0]}", step=step)
        return int(told[:, 0].sum())

    def _snapshot(self) -> Checkpoint:
        layout = Layout.of(self.task.model)
        [shard] = layout.shards(1, cuts_tensors=True)
        return Checkpoint(
            layout=layout,
            shard=shard,
            index=0,
            server_count=1,
            version=self.step_number,
            applied={},
            members=[],
            is_over=False,
            steps=None,
            parameters=_flat(self.task.model, layout),
            optimizer=self.task.optimizer.state_dict(),
        )

    def _resume(self) -> int:
        """Load what rank 0 finds, everywhere; return the step it was saved at."""
        content = self._place.read(_NAME) if self._place and self.rank == 0 else None
        content = _broadcast(content or b"")
        if not content:
            return 0
        where = self._place.describe(_NAME) if self._place else ""
        found = from_bytes(content, place=where)
        check_fits(found, layout=Layout.of(self.task.model), index=0, count=1, place=where)
        load_into(self.task.model, [found])
        self.task.optimizer.load_state_dict(dict(found.optimizer))
        return found.version

    def _split_by_speed(self) -> None:
        """Give each process a share of the batch by its samples per second since the last time."""
        mine = torch.zeros(self.processes)
        mine[self.rank] = self._samples / max(self._computed_s, 1e-9)
        distributed.all_reduce(mine)
        self._computed_s, self._samples = 0.0, 0
        split = split_batch(self.batch, mine.tolist())
        if split != self.split:
            self.split = split
            self._batches = self._drawn_batches()

    def _drawn_batches(self) -> Iterator[tuple[Any, Any]]:
        """Return batches of this process's size, in another order after each start."""
        name = f"rank{self.rank}.{self.step_number}"
        return batches(self.task.data, worker=name, batch=self.split[self.rank])


def _flat(model: nn.Module, layout: Layout) -> Tensor:
    flat = FlatBuffer(layout.size_bytes)
    tensors = {name: tensor.detach() for name, tensor, _ in named_tensors(model)}
    for entry, offset in zip(layout.entries, layout.offsets, strict=True):
        flat.view(offset, entry).copy_(tensors[entry.name])
    return flat.raw


def _broadcast(content: bytes) -> bytes:
    """Return what rank 0 has, on every process."""
    size = torch.tensor([len(content)])
    distributed.broadcast(size, src=0)
    told = torch.zeros(int(size), dtype=torch.uint8)
    if content:
        told.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
    if int(size):
        distributed.broadcast(told, src=0)
    return told.numpy().tobytes()


def main() -> None:
    """Train a script as one of torchrun's processes; tell in a line what no restart mends."""
    asked = _asked()
    try:
        _train(asked)
    except (BadInputError, TrainingError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        _end_torchrun()
        sys.exit(1)


def _end_torchrun() -> None:
    """End the process that would start all anew, and find the same again each time."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os.kill(os.getppid(), signal.SIGTERM)


def _train(asked: argparse.Namespace) -> None:
    uses_cuda = torch.cuda.is_available()
    distributed.init_process_group("cpu:gloo,cuda:nccl" if uses_cuda else "gloo")
    try:
        task = load_task(asked.script)
        if uses_cuda:
            torch.cuda.set_device(distributed.get_node_local_rank())
            task.model.to("cuda")
        place = open_place(asked.checkpoint) if asked.checkpoint else None
        training = ElasticDdp(task, batch=asked.batch, place=place)
        loss = training.run(steps=asked.steps, every=asked.every)
        if training.rank == 0:
            print(f"step {training.step_number}, loss {loss:.4g}, split {training.split}")
    finally:
        distributed.destroy_process_group()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m spotwright.train.ddp")
    parser.add_argument("script", help="FILE.py with build(), FILE.py:FUNCTION or MODULE:FUNCTION")
    parser.add_argument("--batch", type=_from_one, required=True, help="of all processes together")
    parser.add_argument("--steps", type=_from_one, required=True)
    parser.add_argument("--checkpoint", help="a folder or s3://BUCKET/KEY")
    parser.add_argument("--every", type=_from_one, default=100, help="steps between checkpoints")
    return parser.parse_args()


def _from_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


if __name__ == "__main__":
    main()
