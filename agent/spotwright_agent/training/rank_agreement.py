"""All processes of a training run agree on what one of them was warned of.

A notice comes to one host, but saving a sharded model takes all of them at the same step: one that
saves alone waits for the others for ever. So the ranks exchange a byte after each step, over the
CPU and in the background, and read the answer after the next one.
"""

from typing import Any


class RankAgreement:
    """The largest of what the ranks say, one step later."""

    def __init__(self) -> None:
        """Open a group of its own; every rank has to, at the same point."""
        import torch  # noqa: PLC0415  a single process needs none of it
        from torch import distributed  # noqa: PLC0415

        self._torch, self._distributed = torch, distributed
        self._group: Any = None
        together = distributed.is_available() and distributed.is_initialized()
        if together and distributed.get_world_size() > 1:
            self._group = distributed.new_group(backend="gloo")
        self._under_way: tuple[Any, Any] | None = None

    def largest(self, own: int) -> int:
        """Return the largest that any rank said after the step before; alone, what is said now."""
        if self._group is None:
            return own
        found = 0
        if self._under_way is not None:
            work, told = self._under_way
            work.wait()
            found = int(told.item())  # on the CPU: no GPU is waited for
        told = self._torch.tensor([own], dtype=self._torch.uint8)
        operation = self._distributed.ReduceOp.MAX
        work = self._distributed.all_reduce(told, op=operation, group=self._group, async_op=True)
        self._under_way = (work, told)
        return found

    def close(self) -> None:
        """Wait for what is under way; every rank is at the same point."""
        if self._under_way is not None:
            self._under_way[0].wait()
            self._under_way = None
