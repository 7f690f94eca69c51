"""Find hosts that have become less while they train: a pure function of their latest minutes.

What a host has is told by its agent: the CPUs that training may use, and the rate at which the
network takes what is sent. Of the intervals that tell, the two newest are now, and before is the
median of the others. A host has shrunk where

    now    <= 0.8 * before   in both, and they agree within 15 %
    slowed >= 1.15           its compute (CPU) or exchange (network) over that in intervals that
                             were still as before

The network falls for everybody where a server becomes the bottleneck, so it counts only where it
fell to less than 0.8 of what most others have left of theirs. A host is whole again once
now >= 0.9 * before in both.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from spotwright.domain.shrunk import Part, Resource, ShrunkHost
from spotwright.domain.telemetry import RollupPart

_SHRUNK, _WHOLE, _SLOWED, _AGREED = 0.8, 0.9, 1.15, 0.15
_NEWEST, _LEAST_BEFORE = 2, 3  # intervals
_LEAST_STEPS = 3  # now and before
_FIGURES = {Resource.CPU: "cpu_limit_count", Resource.NETWORK: "network_reached_mbps"}
_TERMS = {Resource.CPU: ("compute_s", "data_wait_s"), Resource.NETWORK: ("communication_s",)}

HostParts = tuple[str, Sequence[RollupPart]]  # agent, and its intervals, oldest first
Known = Mapping[Part, ShrunkHost]


class Sizes(NamedTuple):
    """What has changed of hosts."""

    shrunk: tuple[ShrunkHost, ...] = ()  # that nobody knew of, or not so much of
    whole: tuple[ShrunkHost, ...] = ()  # that had shrunk, and are as before


def find_shrunk(hosts: Collection[HostParts], known: Known) -> Sizes:
    """Return what has become of hosts since they were looked at last.

    Args:
        hosts: those of a job, with their latest minutes.
        known: what has shrunk already.
    """
    shrunk: list[ShrunkHost] = []
    whole: list[ShrunkHost] = []
    for resource in Resource:
        looks = {
            agent_id: look
            for agent_id, parts in hosts
            if (look := _look(parts, resource, known.get(Part(agent_id, resource))))
        }
        for agent_id, look in looks.items():
            part = Part(agent_id, resource)
            if part in known and min(look.newest) >= _WHOLE * look.before:
                whole.append(known[part])
            others = [other.share for name, other in looks.items() if name != agent_id]
            if look.is_less and (resource is Resource.CPU or _falls_alone(look.share, others)):
                found = look.host(part, known.get(part))
                shrunk += [] if found is None else [found]
    return Sizes(tuple(shrunk), tuple(whole))


def _falls_alone(share: float, others: Sequence[float]) -> bool:
    return not others or share <= _SHRUNK * median(others)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One resource of one host."""

    resource: Resource
    before: float
    newest: Sequence[float]
    parts_before: Sequence[RollupPart]
    parts_now: Sequence[RollupPart]

    @property
    def now(self) -> float:
        return fmean(self.newest)

    @property
    def share(self) -> float:
        return self.now / self.before

    @property
    def is_less(self) -> bool:
        agreed = max(self.newest) - min(self.newest) <= _AGREED * max(self.newest)
        return agreed and max(self.newest) <= _SHRUNK * self.before

    def host(self, part: Part, known: ShrunkHost | None) -> ShrunkHost | None:
        """Return what is new of a host that has less; None: nothing, or its steps are not slow."""
        if known is not None:
            if abs(self.now / known.now - 1) <= _AGREED:
                return None
            slowed: float | None = known.slowed * known.now / self.now
        else:
            slowed = self._slowed()
        if slowed is None or slowed < _SLOWED:
            return None
        return ShrunkHost(part=part, before=self.before, now=self.now, slowed=slowed)

    def _slowed(self) -> float | None:
        both = (*self.parts_before, *self.parts_now)
        told = [
            name for name in _TERMS[self.resource] if any(name in part.statistics for part in both)
        ]
        names = told or ["step_s"]
        before_s, now_s = _mean_s(self.parts_before, names), _mean_s(self.parts_now, names)
        return now_s / before_s if before_s and now_s else None


def _look(
    parts: Sequence[RollupPart], resource: Resource, known: ShrunkHost | None
) -> _Look | None:
    """Return what a host has and had of something; None where too few intervals tell."""
    figure = _FIGURES[resource]
    telling = [part for part in parts if figure in part.statistics]
    values = [part.statistics[figure].mean for part in telling]
    if len(values) < _NEWEST + (0 if known else _LEAST_BEFORE):
        return None
    before = known.before if known else median(values[:-_NEWEST])
    if before <= 0 or min(values[-_NEWEST:]) <= 0:
        return None
    as_before = [p for p, v in zip(telling, values, strict=True) if v >= _WHOLE * before]
    return _Look(
        resource=resource,
        before=before,
        newest=values[-_NEWEST:],
        parts_before=as_before,
        parts_now=telling[-_NEWEST:],
    )


def _mean_s(parts: Sequence[RollupPart], names: Sequence[str]) -> float | None:
    """Return the seconds of a step that some of its parts take; None where too few steps tell."""
    steps = sum(part.step_count for part in parts)
    if steps < _LEAST_STEPS:
        return None
    totals = (part.statistics[n].total for part in parts for n in names if n in part.statistics)
    return sum(totals) / steps
