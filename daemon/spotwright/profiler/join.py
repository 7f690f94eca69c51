"""The other host of an exchange: one process that averages gradients with one over there."""

import os

from spotwright.domain.errors import OutsideWorldError
from spotwright.profiler.devices import open_device
from spotwright.profiler.exchange import PROCESSES, Order, check_address, interface_of
from spotwright.profiler.exchange_process import take_part
from spotwright.profiler.profile import ProfileOptions


def join(options: ProfileOptions, address: str) -> None:
    """Take part until the host at ADDRESS:PORT has what it wants.

    Raises:
        BadInputError: it is no such address.
        OutsideWorldError: nobody listens there, or the other end ended.
    """
    check_address("--join", address)
    device = open_device(options.device)
    order = Order(
        target=options.target,
        data=str(options.data) if options.data else None,
        batch=options.batch,
        seconds=options.seconds,
        device=device.torch.type,
        rank=PROCESSES,
        local_count=PROCESSES,
        world_size=PROCESSES + 1,
        rendezvous=f"tcp://{address}",
        threads=max(1, len(os.sched_getaffinity(0)) // PROCESSES),
        interface=interface_of(address.rpartition(":")[0]),
    )
    try:
        take_part(order)
    except RuntimeError as error:  # torch.distributed has no type of its own for most of them
        first = str(error).strip().splitlines()[0]
        raise OutsideWorldError(f"the exchange with {address} failed: {first}") from error
