"""What runs on hosts: parameter servers, workers, processes of an all-reduce.

Each is made of the product's own parts. A worker keeps a line of each step in a file, for what it
would send at its end is lost when its host is.
"""

import os
import resource
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Unpack

import torch
from torch import Tensor, distributed
from torch._C._distributed_c10d import GradBucket

from lab.emulated_gpu import Device, ModelShape, emulated_task
from spotwright.domain.errors import TrainingError, TrainingOverError
from spotwright.train import ParameterServer, ServerSettings, Worker
from spotwright.train.ddp import ElasticDdp
from spotwright.train.training_loop import TrainingLoop
from spotwright.train.updates import Update
from spotwright_agent.training import StepReporter
from spotwright_agent.training.reporter import StepFigures

PORT = 7600
_FIGURES = ("step_s", "samples", "loss", "data_wait_s", "compute_s", "communication_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a server did."""

    updates: int
    cpu_s_per_update: float  # from the first update on
    resumed_version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTask:
    """What a worker trains, and where it writes its steps down."""

    name: str
    shape: ModelShape
    device: Device
    batch: int
    seed: int
    log: Path


class LoggedReporter(StepReporter):
    """Tells the agent of a host its steps, and keeps them in a file."""

    def __init__(self, log: Path, *, rank: int) -> None:
        super().__init__(rank=rank)
        self._log = log.open("a", buffering=1)

    def step(self, step: int, *, step_s: float | None = None, **told: Unpack[StepFigures]) -> None:
        """Tell a step."""
        figures = {"step_s": step_s, **told}
        cells = (str(figures.get(name, "")) for name in _FIGURES)
        self._log.write(f"{time.monotonic()},{step},{','.join(cells)}\n")
        super().step(step, step_s=step_s, **told)


def serve(
    pipe: Connection, shape: ModelShape, settings: ServerSettings, log: Path | None = None
) -> None:
    """Hold parameters until training is over; send True when workers may come."""
    torch.set_num_threads(1)
    nobody = Device(name="none", fixed_s=0.0, per_sample_s=1e-9, jitter_fraction=0.0)
    task, counted = emulated_task(shape, nobody, seed=0), _Counted(log)
    server = ParameterServer(task.model, task.optimizer, settings=settings, observe=counted)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.progress.stop).start())
    with server:
        pipe.send(True)
        server.wait()
    pipe.send(
        Served(
            updates=counted.updates,
            cpu_s_per_update=counted.cpu_s_per_update,
            resumed_version=server.resumed_version,
        )
    )


def work(pipe: Connection, task: WorkerTask, servers: Sequence[str], tls_dir: Path) -> None:
    """Train until training is over, or SIGTERM; send what was done."""
    torch.set_num_threads(1)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    made = emulated_task(task.shape, task.device, seed=task.seed)
    worker = Worker(made.model, servers, name=task.name, tls_dir=tls_dir)
    reporter = LoggedReporter(task.log, rank=task.seed)
    loop = TrainingLoop(made, worker, batch=task.batch, reporter=reporter, stops=stopped.is_set)
    try:
        with worker:
            pipe.send(loop.run())
    except TrainingOverError:
        pipe.send(loop.result("late"))
    except TrainingError as error:
        pipe.send(error)
    finally:
        reporter.close()


def reduce_all(
    pipe: Connection, task: WorkerTask, rank: int, addresses: Sequence[str], steps: int
) -> None:
    """Be one process of a job that all-reduces, as torchrun would start it."""
    torch.set_num_threads(1)
    os.environ |= {
        "MASTER_ADDR": addresses[0],
        "MASTER_PORT": str(PORT),
        "RANK": str(rank),
        "WORLD_SIZE": str(len(addresses)),
        "GLOO_SOCKET_IFNAME": "eth0",
    }
    distributed.init_process_group("gloo")
    try:
        made = emulated_task(task.shape, task.device, seed=task.seed)
        training = ElasticDdp(
            made,
            batch=task.batch * len(addresses),
            place=None,
            reporter=LoggedReporter(task.log, rank=rank),
        )
        training.run(steps=steps, every=steps)
        pipe.send(training.step_number)
    finally:
        distributed.destroy_process_group()


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """When DDP would send what, counted in a process without others."""

    byte_counts: tuple[int, ...]
    ready_fractions: tuple[float, ...]  # of the step


def watch_buckets(pipe: Connection, task: WorkerTask, steps: int) -> None:
    """Send the gradient buckets of a step of one process alone."""
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(PORT)}
    distributed.init_process_group("gloo", rank=0, world_size=1)
    made = emulated_task(task.shape, task.device, seed=task.seed)
    model = torch.nn.parallel.DistributedDataParallel(made.model)
    seen: list[tuple[float, int]] = []

    def look(_state: object, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        seen.append((time.perf_counter(), bucket.buffer().nbytes))
        future: torch.futures.Future[Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, look)
    for inputs, targets in islice(made.data(task.name, task.batch), steps):
        seen.clear()  # DDP arranges its buckets anew after the first step
        begun_s = time.perf_counter()
        made.loss(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
        ended_s = time.perf_counter()
    pipe.send(
        Buckets(
            byte_counts=tuple(size for _, size in seen),
            ready_fractions=tuple((at_s - begun_s) / (ended_s - begun_s) for at_s, _ in seen),
        )
    )
    distributed.destroy_process_group()


class _Counted:
    """Counts updates, and the CPU time of this process between them; keeps a line of each."""

    def __init__(self, log: Path | None) -> None:
        self.updates, self._from_s, self._until_s = 0, 0.0, 0.0
        self._log = log.open("a", buffering=1) if log else None

    def __call__(self, update: Update) -> None:
        if self._log is not None:
            cells = (time.monotonic(), update.version, update.worker, update.sequence)
            self._log.write(",".join(map(str, cells)) + "\n")
        self.updates += 1
        self._until_s = _cpu_s()
        if self.updates == 1:
            self._from_s = self._until_s

    @property
    def cpu_s_per_update(self) -> float:
        """Seconds of one CPU."""
        return (self._until_s - self._from_s) / max(self.updates - 1, 1)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
