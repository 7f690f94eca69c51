"""Jobs of real processes for the benchmarks: a small task, servers and workers that are killed."""

import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from spotwright.domain.address import Address
from spotwright.train import ServerSettings
from spotwright.train.checkpoint import from_bytes
from spotwright.train.roles import ServerRole, WorkerRole
from spotwright.train.script import Task
from tests.train.role_process import RoleProcess

SEED, CLASSES, FEATURES = 7, 10, 64
_MODULE = "benchmarks.train.job_processes"


def build() -> Task:
    """Return a small network on noisy patterns that are made on the spot, 10 ms a batch."""
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    return Task(model, optimizer, nn.CrossEntropyLoss(), batches)


def batches(worker: str, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    patterns = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(SEED))
    dice = torch.Generator().manual_seed(SEED + sum(worker.encode()))
    while True:
        classes = torch.randint(CLASSES, (size,), generator=dice)
        noise = torch.randn(size, FEATURES, generator=dice)
        time.sleep(0.01)
        yield patterns[classes] + 2.0 * noise, classes


def start_server(port: int, folder: Path, *, steps: int, every: int) -> RoleProcess:
    settings = ServerSettings(
        listen=Address("127.0.0.1", port), steps=steps, checkpoint=str(folder), every=every
    )
    return RoleProcess(ServerRole(script=f"{_MODULE}:build", settings=settings, threads=1))


def start_worker(port: int, name: str) -> RoleProcess:
    where = (f"127.0.0.1:{port}",)
    return RoleProcess(
        WorkerRole(script=f"{_MODULE}:build", servers=where, name=name, batch=16, threads=1)
    )


def saved_version(folder: Path) -> int:
    """Return the version of the checkpoint; 0: there is none yet."""
    path = folder / "shard-0-of-1.ckpt"
    return from_bytes(path.read_bytes(), place=str(path)).version if path.exists() else 0


def wait_for_version(folder: Path, version: int) -> None:
    while saved_version(folder) < version:
        time.sleep(0.01)


def preload() -> None:
    """Have one process import PyTorch, from which all others are forked."""
    multiprocessing.get_context("forkserver").set_forkserver_preload([_MODULE, "torch._dynamo"])
