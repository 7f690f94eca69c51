"""A worker: computes gradients of its batches, pushes them and receives the parameters.

    with Worker(model, ["10.0.0.5:7600"], name="w0") as worker:
        while not worker.is_over:
            inputs, targets = next(batches)
            loss = loss_function(model(inputs), targets)
            loss.backward()
            worker.exchange(loss=float(loss), batch=len(inputs))

No worker is special: each may join, leave or die at any time.
"""

import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from torch import nn

from spotwright.domain.address import Address
from spotwright.domain.errors import (
    BadInputError,
    BatchError,
    LossNotFiniteError,
    PeerRefusedError,
    TrainingOverError,
)
from spotwright.train.model_memory import ModelMemory
from spotwright.train.server_link import LinkSettings, ServerLink
from spotwright.train.wire import Flag, Frame, FrameKind

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One push and what came back."""

    sequence: int
    version: int  # of the parameters received, on server 0
    staleness: int  # the largest of any server
    applied: bool  # on all servers; False: too late for its round, or training is over
    exchange_s: float


class Worker:
    """A model that is trained with others."""

    def __init__(
        self,
        model: nn.Module,
        servers: Sequence[str],
        *,
        name: str | None = None,
        tls_dir: Path | None = None,
        patience_s: float = 120.0,
    ) -> None:
        """Lay the model out in memory; nothing is connected yet.

        Args:
            model: as the servers build it; its tensors on the CPU become views of one run of bytes.
            servers: HOST:PORT of each parameter server.
            name: of its own in the job; by default host and process.
            tls_dir: certificates; needed unless the servers are on this machine.
            patience_s: how long a server may be away.
        """
        if not servers:
            raise BadInputError("a worker needs the address of a parameter server at least")
        self.name = name or f"{platform.node()}-{os.getpid()}"
        self.memory = ModelMemory(model)
        settings = LinkSettings.of(self.name, tls_dir=tls_dir, patience_s=patience_s)
        self._links = [ServerLink(Address.parse(s), settings, self.memory) for s in servers]
        self._threads = ThreadPoolExecutor(len(servers), thread_name_prefix="server")
        self.sequence = 0
        self.is_over = self._has_joined = False

    @property
    def reconnects(self) -> int:
        """How often a connection was made anew."""
        return sum(link.reconnects for link in self._links)

    def join(self) -> None:
        """Connect with all servers and receive the parameters.

        Raises:
            PeerRefusedError: a server has another model, or is not who it should be.
            TrainingOverError: training has ended; `is_over` is set.
        """
        try:
            self._on_all(ServerLink.open)
            self._sort_links()
            answer = self._links[0].join()
            self._pull_from_others(answer.version)
        except BaseException as error:
            self.is_over = isinstance(error, TrainingOverError)
            self.close()
            raise
        self.sequence = max(link.sequence for link in self._links)
        self.is_over, self._has_joined = Flag.OVER in answer.flags, True
        self.memory.spread()

    def exchange(self, *, loss: float, batch: int) -> Exchange:
        """Push the gradients that are in the model and receive the parameters into it.

        Raises:
            BatchError: the batch is empty.
            LossNotFiniteError: loss or gradients are NaN or infinite; nothing was pushed.
            ServerLostError: a server stayed away.
            TrainingError: training was stopped.
        """
        sequence = self.sequence + 1
        if batch < 1:
            raise BatchError(f"worker {self.name}: a batch of {batch} samples at step {sequence}")
        is_finite = self.memory.collect()
        if not math.isfinite(loss) or not is_finite:
            told = loss if not math.isfinite(loss) else math.nan
            raise LossNotFiniteError(told, worker=self.name, step=sequence)
        frame = Frame(
            kind=FrameKind.PUSH,
            sequence=sequence,
            batch=batch,
            loss=loss,
            note=self._links[0].members if len(self._links) > 1 else {},
        )
        started_s = time.perf_counter()
        answers = self._on_all(lambda link: link.push(frame))
        self.sequence = sequence
        self.is_over = self.is_over or any(Flag.OVER in answer.flags for answer in answers)
        is_late = bool(self._links[0].members) and Flag.APPLIED not in answers[0].flags
        if is_late and not self.is_over:
            self._pull_from_others(answers[0].version)  # they may have answered a round before it
        self.memory.spread()
        return Exchange(
            sequence=sequence,
            version=answers[0].version,
            staleness=max(answer.staleness for answer in answers),
            applied=all(Flag.APPLIED in answer.flags for answer in answers),
            exchange_s=time.perf_counter() - started_s,
        )

    def pull(self) -> int:
        """Receive the parameters as they are now, drop the gradients; return server 0's version."""
        answer = self._links[0].pull()
        self._pull_from_others(answer.version)
        self.memory.spread()
        return answer.version

    def hurry(self) -> None:
        """Wait for no server that is away, nor to join; from another thread or a signal.

        Whoever waits so gets a ServerLostError. A step that servers answer still ends.
        """
        for link in self._links:
            link.hurry()
            if not self._has_joined:
                link.end()

    def leave(self, failure: str = "") -> None:
        """Say goodbye; the others go on.

        Args:
            failure: what makes all training stop, such as a loss that is NaN.
        """
        self._on_all(lambda link: link.leave(is_over=self.is_over, failure=failure))
        self.close()

    def close(self) -> None:
        """End the connections without a word, as when this process died."""
        for link in self._links:
            link.end()
        self._threads.shutdown()

    def __enter__(self) -> Self:
        self.join()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self.close()  # Ctrl-C: a goodbye would wait behind the exchange that was broken off
        else:
            self.leave(str(error) if isinstance(error, LossNotFiniteError) else "")

    def _on_all(self, do: Callable[[ServerLink], _T]) -> list[_T]:
        return self._on(self._links, do)

    def _pull_from_others(self, version: int) -> None:
        """Receive what the other servers have when they are where server 0 was."""
        self._on(self._links[1:], lambda link: link.pull(version))

    def _on(self, links: Sequence[ServerLink], do: Callable[[ServerLink], _T]) -> list[_T]:
        """Do something with servers at once, and wait for all of them, or for one that fails."""
        if len(links) == 1:
            return [do(links[0])]
        waiting = [self._threads.submit(do, link) for link in links]
        ended, others = wait(waiting, return_when=FIRST_EXCEPTION)
        if others:
            for link in links:
                link.end()  # or this would wait for servers that wait for the one that failed
        for one in ended:
            one.result()  # raises what came first
        return [one.result() for one in waiting]

    def _sort_links(self) -> None:
        """Put servers in their own order, and check that they make up the model."""
        self._links.sort(key=lambda link: link.index)
        end = 0
        for index, link in enumerate(self._links):
            if (link.index, link.count, link.shard.start) != (index, len(self._links), end):
                raise PeerRefusedError(
                    f"{link.address} is server {link.index} of {link.count} and begins at byte "
                    f"{link.shard.start}, where server {index} of {len(self._links)} at byte {end} "
                    "is needed; give the address of each server of one job, once"
                )
            end = link.shard.stop
        if end != self.memory.layout.exchanged_bytes:
            raise PeerRefusedError(f"the servers hold {end} bytes of the model, not all of it")
