"""All processes of a training run agree on what one of them was warned of.

A notice comes to one host, but saving a sharded model takes all of them at the same step: one that
saves alone waits for the others for ever. So the ranks exchange two numbers about once a second,
over the CPU and in the background, and read the answer one step later. When, they tell by counting
steps, from figures that all of them have, so that all exchange after the same step.

Whatever fails ends the agreement on this rank, never training: it is asked for nothing then.
"""

import logging
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

# An exchange takes 0.4 ms of a busy CPU. Steps may become slow at any time, hence few of them.
_EVERY_S, _MOST_STEPS = 1.0, 20
_TIMEOUT_S = 30.0  # a rank may wait long for data; training waits for it, too
_LOG = logging.getLogger(__name__)


class RankAgreement:
    """The largest of what the ranks say. Raises nothing; `problem` says why it has ended."""

    def __init__(self, *, timeout_s: float = _TIMEOUT_S) -> None:
        """Open a group of its own; every rank has to, at the same point."""
        self.problem = ""
        self._group: Any = None
        self._under_way: tuple[Any, Any] | None = None
        self._said, self._pause = 0, 1
        self._step_count, self._begun_s = 0, time.monotonic()
        self._is_alone = False
        try:
            self._open(timeout_s)
        except Exception as error:  # whatever it is, training goes on
            self._end(error)

    def largest(self, own: int) -> int:
        """Return the largest that any rank said lately; alone, what is said now.

        Every rank has to call it after each step.
        """
        if self._is_alone or self._group is None:
            return own if self._is_alone else 0
        self._said = max(self._said, own)
        self._step_count += 1
        try:
            return self._exchange()
        except Exception as error:  # a rank is gone, or does not answer
            self._end(error)
            return 0

    def close(self) -> None:
        """Wait for what is under way, and close; every rank is at the same point."""
        under_way, group = self._under_way, self._group
        self._under_way = self._group = None
        with suppress(Exception):
            if under_way is not None:
                under_way[0].wait()
        with suppress(Exception):
            if group is not None:
                self._distributed.destroy_process_group(group)

    def _open(self, timeout_s: float) -> None:
        import torch  # noqa: PLC0415  a single process needs none of it
        from torch import distributed  # noqa: PLC0415

        self._torch, self._distributed = torch, distributed
        together = distributed.is_available() and distributed.is_initialized()
        self._is_alone = not together or distributed.get_world_size() == 1
        if not self._is_alone:
            timeout = timedelta(seconds=timeout_s)
            self._group = distributed.new_group(backend="gloo", timeout=timeout)

    def _exchange(self) -> int:
        found = 0
        if self._under_way is not None:
            (work, told), self._under_way = self._under_way, None
            work.wait()
            found, step_us = told.tolist()  # on the CPU: no GPU is waited for
            self._pause = max(1, min(int(_EVERY_S * 1e6 / max(step_us, 1)), _MOST_STEPS))
        self._pause -= 1
        if self._pause <= 0:
            self._begin()
        return found

    def _begin(self) -> None:
        now_s = time.monotonic()
        step_us = int((now_s - self._begun_s) / self._step_count * 1e6)
        told = self._torch.tensor([self._said, step_us], dtype=self._torch.int64)
        self._said, self._step_count, self._begun_s = 0, 0, now_s
        operation = self._distributed.ReduceOp.MAX
        work = self._distributed.all_reduce(told, op=operation, group=self._group, async_op=True)
        self._under_way = (work, told)

    def _end(self, error: Exception) -> None:
        self.problem = f"the ranks no longer agree on when to save: {error}"
        _LOG.warning(self.problem)
        self.close()
