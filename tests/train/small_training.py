"""A model that trains in milliseconds, servers of it in this process, and workers by hand."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from spotwright.domain.workload import Strategy
from spotwright.train import ParameterServer, ServerSettings, Update, Worker

FEATURES, CLASSES = 12, 3


def build_model(hidden: int = 16) -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(FEATURES, hidden), nn.Tanh(), nn.Linear(hidden, CLASSES))


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)


def batch(seed: int, size: int = 8) -> tuple[Tensor, Tensor]:
    """Return points whose class is told by their first two coordinates."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(size, FEATURES, generator=generator)
    return inputs, (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long()


def backward(model: nn.Module, seed: int, size: int = 8) -> float:
    """Add the gradient of a batch to a model; return the loss."""
    inputs, targets = batch(seed, size)
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    return loss.item()


def parameters(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


class SmallJob:
    """Servers of one job, and what they were seen to do."""

    def __init__(self, servers: Sequence[ParameterServer], updates: Sequence[list[Update]]) -> None:
        self.servers, self.updates = servers, updates

    @property
    def addresses(self) -> list[str]:
        return [str(server.address) for server in self.servers]

    def worker(self, name: str, model: nn.Module | None = None, **options: Any) -> Worker:
        return Worker(model or build_model(), self.addresses, name=name, **options)

    def parameters(self) -> Tensor:
        """Return what the servers hold, as the model would have it."""
        model = build_model()
        with self.servers[0].progress.lock:
            for server in self.servers:
                shard = server.progress.shard
                for piece in shard.layout.pieces(shard.shard):
                    view = shard.flat.view(piece.offset_bytes, piece.entry, piece.count)
                    tensor = model.get_parameter(piece.entry.name).detach().view(-1)
                    tensor[piece.first : piece.first + piece.count].copy_(view)
        return parameters(model)


@contextmanager
def small_job(
    strategy: Strategy = Strategy.ASP_PS,
    *,
    count: int = 1,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = sgd,
    build: Callable[[], nn.Module] = build_model,
    **settings: Any,
) -> Iterator[SmallJob]:
    with ExitStack() as stack:
        servers, seen = [], []
        for index in range(count):
            model, updates = build(), list[Update]()
            chosen = ServerSettings(index=index, count=count, strategy=strategy, **settings)
            server = ParameterServer(
                model, optimizer(model), settings=chosen, observe=updates.append
            )
            servers.append(stack.enter_context(server))
            seen.append(updates)
        yield SmallJob(servers, seen)


@contextmanager
def together(*tasks: Callable[[], None]) -> Iterator[None]:
    """Run tasks in threads; what one raises is raised at the end."""
    errors: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
