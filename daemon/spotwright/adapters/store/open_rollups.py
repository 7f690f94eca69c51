"""Rollups that are still being added to.

Each is a part of its interval with a number of its own, so that its row is only ever written by the
object that made it: a later sum replaces an earlier one. What is no longer held here (it is old, or
a commit failed and nobody knows what was kept) is never written again; more samples of its interval
start another part. A row that is gone was added up into a coarser one: it is not written again
either. Readers merge parts.
"""

import itertools
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spotwright.adapters.store.rollup_document import packed
from spotwright.adapters.store.stored_rollups import WRITTEN_S
from spotwright.domain.telemetry import ReceivedBatch, RollupPart

_KEPT_PER_AGENT = 2  # this interval and the one before
_MAX_AGENTS = 10_000


class AgentInterval(NamedTuple):
    """What a part is of: ten seconds of an agent."""

    agent_id: str
    start_unix_s: int


@dataclass(slots=True)
class OpenPart:
    """One part. Sums are replaced, never changed in place: a copy may share them."""

    number: int
    is_stored: bool = False  # there is a row of it
    counts: tuple[int, int, int] = (0, 0, 0)
    sums: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def copy(self) -> "OpenPart":
        """Return one that can be added to without touching this one."""
        return OpenPart(self.number, self.is_stored, self.counts, self.sums.copy())

    def add(self, part: RollupPart) -> None:
        """Add samples."""
        hosts, gpus, steps = self.counts
        self.counts = (
            hosts + part.host_sample_count,
            gpus + part.gpu_sample_count,
            steps + part.step_count,
        )
        sums = self.sums
        for name, figure in part.statistics.items():
            mine = sums.get(name)
            if mine is None:
                sums[name] = figure
            else:
                count, total, largest = figure
                sums[name] = (
                    mine[0] + count,
                    mine[1] + total,
                    mine[2] if mine[2] > largest else largest,
                )


Drafts = dict[AgentInterval, OpenPart]


class OpenRollups:
    """The newest parts of each agent. One thread at a time."""

    def __init__(self) -> None:
        self._parts: dict[
            str, dict[AgentInterval, OpenPart]
        ] = {}  # least recently used agent first
        self._numbers = itertools.count(secrets.randbits(62))

    def draft(self, batches: Iterable[ReceivedBatch]) -> Drafts:
        """Return the parts as these batches make them; nothing is changed here yet."""
        drafts: Drafts = {}
        for batch in batches:
            agent_id = batch.key.agent_id
            for part in batch.parts:
                interval = AgentInterval(agent_id, part.start_unix_s)
                draft = drafts.get(interval)
                if draft is None:
                    draft = drafts[interval] = self._copied(interval)
                draft.add(part)
        return drafts

    def adopt(self, drafts: Drafts) -> None:
        """Go on from parts that are stored now."""
        for interval, part in drafts.items():
            part.is_stored = True
            mine = self._parts.pop(interval.agent_id, {})
            mine.pop(interval, None)
            mine[interval] = part
            while len(mine) > _KEPT_PER_AGENT:
                del mine[next(iter(mine))]
            self._parts[interval.agent_id] = mine
        while len(self._parts) > _MAX_AGENTS:
            del self._parts[next(iter(self._parts))]

    def forget(self) -> None:
        """Start other parts from now on."""
        self._parts.clear()

    def _copied(self, interval: AgentInterval) -> OpenPart:
        known = self._parts.get(interval.agent_id, {}).get(interval)
        return OpenPart(next(self._numbers)) if known is None else known.copy()


def rows_of(drafts: Drafts, *, stored: bool) -> list[dict[str, Any]]:
    """Return the rows of parts that are in the database already, or of those that are not."""
    return [
        {
            "agent_id": interval.agent_id,
            "resolution_s": WRITTEN_S,
            "start_unix_s": interval.start_unix_s,
            "part_number": part.number,
            "document": packed(part.counts, part.sums),
        }
        for interval, part in drafts.items()
        if part.is_stored is stored
    ]
