"""Times in which the same hosts made steps, from the sums of each host's steps.

A host takes part from its first interval with steps to its last; where none ended for more than
30 s and three of its longest steps, it left and came back. Whenever a host comes or goes, one
window ends and another begins. The first minute of a window is left out, as warm-up, and so are
windows with fewer than 50 steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from spotwright.domain.telemetry import RollupPart

WARM_UP_S, LEAST_STEPS = 60, 50
_LONGEST_GAP_S, _GAP_STEPS = 30.0, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyWindow:
    """A time in which the fleet did not change."""

    start_unix_s: int
    end_unix_s: int
    step_s: Mapping[str, float]  # mean, by agent
    step_count: int


class _Span(NamedTuple):
    agent_id: str
    start_unix_s: int
    end_unix_s: int


def steady_windows(
    steps: Mapping[str, Sequence[RollupPart]], *, resolution_s: int
) -> list[SteadyWindow]:
    """Return the windows, oldest first, from intervals by agent."""
    stepping = {
        agent_id: [part for part in parts if part.step_count and "step_s" in part.statistics]
        for agent_id, parts in steps.items()
    }
    spans = [
        span
        for agent_id, parts in stepping.items()
        for span in _spans(agent_id, parts, resolution_s)
    ]
    edges = sorted({edge for span in spans for edge in (span.start_unix_s, span.end_unix_s)})
    found = []
    for start, end in pairwise(edges):
        present = {s.agent_id for s in spans if s.start_unix_s <= start and end <= s.end_unix_s}
        window = _window({name: stepping[name] for name in present}, start + WARM_UP_S, end)
        if window is not None:
            found.append(window)
    return found


def _spans(agent_id: str, parts: Sequence[RollupPart], resolution_s: int) -> list[_Span]:
    spans: list[_Span] = []
    for part in sorted(parts, key=lambda part: part.start_unix_s):
        start, end = part.start_unix_s, part.start_unix_s + resolution_s
        gap_s = max(_LONGEST_GAP_S, _GAP_STEPS * part.statistics["step_s"].largest)
        if spans and start - spans[-1].end_unix_s <= gap_s:
            spans[-1] = spans[-1]._replace(end_unix_s=end)
        else:
            spans.append(_Span(agent_id, start, end))
    return spans


def _window(
    parts: Mapping[str, Sequence[RollupPart]], start_unix_s: int, end_unix_s: int
) -> SteadyWindow | None:
    means, count = {}, 0
    for agent_id, own in parts.items():
        inside = [part for part in own if start_unix_s <= part.start_unix_s < end_unix_s]
        if not inside:
            return None
        steps = sum(part.step_count for part in inside)
        count += steps
        means[agent_id] = sum(p.statistics["step_s"].mean * p.step_count for p in inside) / steps
    if count < LEAST_STEPS:
        return None
    return SteadyWindow(
        start_unix_s=start_unix_s, end_unix_s=end_unix_s, step_s=means, step_count=count
    )


def mean_step_s(window: SteadyWindow) -> float:
    """Return the mean over hosts, which step together."""
    return fmean(window.step_s.values())


def steps_per_s(window: SteadyWindow) -> float:
    """Return the steps of all hosts together, each at its own pace."""
    return sum(1 / step_s for step_s in window.step_s.values())
