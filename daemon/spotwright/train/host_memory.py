"""Whether a server's shard fits into the memory of its host."""

from torch import optim

from spotwright.domain.errors import HostMemoryError
from spotwright.profiler.free_memory import free_memory_bytes
from spotwright.train.layout import Shard

_SLOTS = {optim.SGD: 1, optim.Adagrad: 1, optim.RMSprop: 1}  # tensors beside each parameter
_MOST_SLOTS = 2  # Adam and its relatives


def needed_bytes(shard: Shard, optimizer: optim.Optimizer, *, workers: int) -> int:
    """Return what a server needs: parameters, optimizer, a push of each worker, what is sent.

    Each worker may be sent an older version, a copy of its own, while another is saved; the
    optimizer's own tensors stand there twice while they are saved, and in a round the mean.
    """
    slots = _SLOTS.get(type(optimizer), _MOST_SLOTS)
    return (2 + workers) * shard.size_bytes + (2 * slots + 1 + workers) * shard.exchanged_bytes


def check_fits(shard: Shard, optimizer: optim.Optimizer, *, workers: int) -> None:
    """Raise HostMemoryError where the host is known to be too small."""
    needed, available = needed_bytes(shard, optimizer, workers=workers), free_memory_bytes()
    if available is not None and needed > available:
        raise HostMemoryError(
            f"a parameter server of {shard.size_bytes / 2**20:.0f} MiB for {workers} workers",
            needed_bytes=needed,
            available_bytes=available,
            way_out="divide the model among more servers, or take a larger host",
        )
