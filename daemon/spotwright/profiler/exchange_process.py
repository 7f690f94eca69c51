"""One process of an exchange: `python -m spotwright.profiler.exchange_process ORDER`.

All processes go through the same formations in the same rounds, with a barrier before each, and
the first one times them.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from spotwright.domain.errors import SpotwrightError
from spotwright.profiler.devices import open_device
from spotwright.profiler.exchange import Order
from spotwright.profiler.find import find_subject
from spotwright.profiler.training import Trainee, seed

_ROUNDS = 5
_MOST_STEPS = 20


@dataclass(frozen=True, slots=True)
class _Formation:
    """Who steps at the same time, and with whom gradients are averaged."""

    name: str
    ranks: Sequence[int]
    trainee: Trainee | None  # None: this process is not part of it


def take_part(order: Order) -> None:
    """Do what an order says, and write what was found."""
    seed()
    torch.set_num_threads(order.threads)
    os.environ["GLOO_SOCKET_IFNAME"] = order.interface
    dist.init_process_group(
        "nccl" if order.device == "cuda" else "gloo",
        init_method=order.rendezvous,
        rank=order.rank,
        world_size=order.world_size,
        timeout=timedelta(seconds=order.patience_s),
    )
    try:
        found = _timed(order, _formations(order))
    finally:
        dist.destroy_process_group()
    if order.rank == 0 and order.found:
        Path(order.found).write_text(json.dumps(found))


def _formations(order: Order) -> list[_Formation]:
    here = range(order.local_count)
    alone = _trainee(order)
    formations = [
        _Formation("alone", [0], alone if order.rank == 0 else None),
        _Formation("beside", here, alone if order.rank in here else None),
        _Formation("together", here, _averaging(order, here)),
    ]
    if order.world_size > order.local_count:
        pair = [0, order.local_count]
        formations.append(_Formation("across", pair, _averaging(order, pair)))
    return formations


def _averaging(order: Order, ranks: Sequence[int]) -> Trainee | None:
    """Return a copy of its own: what DDP hooks into a model stays there."""
    group: Any = dist.new_group(list(ranks))  # every process must ask for it
    if order.rank not in ranks:
        return None
    trainee = _trainee(order)
    trainee.model = DistributedDataParallel(trainee.model, process_group=group)
    return trainee


def _trainee(order: Order) -> Trainee:
    name = f"cuda:{order.rank % order.local_count}" if order.device == "cuda" else order.device
    data = Path(order.data) if order.data else None
    return Trainee(find_subject(order.target, data=data), open_device(name))


def _timed(order: Order, formations: Sequence[_Formation]) -> dict[str, list[float]]:
    steps = _agreed_steps(order, formations)
    found: dict[str, list[float]] = {formation.name: [] for formation in formations}
    for _ in range(_ROUNDS):
        for formation in formations:
            found[formation.name].append(_round_s(order, formation, steps))
    return found


def _agreed_steps(order: Order, formations: Sequence[_Formation]) -> int:
    """Have the first process say how many steps a round has: all must take as many."""
    step_s = sum(_round_s(order, formation, 1) for formation in [*formations, *formations]) / 2
    wanted = int(order.seconds / _ROUNDS / step_s) if step_s else 1
    steps = torch.tensor([max(1, min(_MOST_STEPS, wanted))])
    steps = open_device("auto" if order.device == "cuda" else "cpu").moved(steps)
    dist.broadcast(steps, src=0)
    return int(steps.item())


def _round_s(order: Order, formation: _Formation, steps: int) -> float:
    """Return the median step of a formation; 0 for who is not part of it."""
    dist.barrier()
    trainee = formation.trainee
    if trainee is None:
        return 0.0
    batch = trainee.device.moved(trainee.batch(order.batch))
    return statistics.median(
        trainee.timed_step(batch, size=order.batch, clock=time.perf_counter) for _ in range(steps)
    )


def main() -> None:
    """Read the order and tell an error in one line."""
    try:
        take_part(Order(**json.loads(sys.argv[1])))
    except SpotwrightError as error:
        print(str(error), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
