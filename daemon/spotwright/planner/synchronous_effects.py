"""Where a box of synchronous fleets flatters a point: what to cut it by."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spotwright.planner.synchronous_workers import (
    EPS,
    TWO_NODE_LOSS,
    Box,
    Corner,
    SynchronousWorkers,
    into,
)

Floats = NDArray[np.float64]
Effects = dict[str | int, float]  # by range, or by the index of a key; in logarithms

_EXPLAINS = 0.3  # of the flattery: what the range to be cut should mend


def step_effects(workers: SynchronousWorkers, box: Box, x: Floats) -> Effects:
    """Return by how much each range makes a point's step too short."""
    corner, there = workers.corner(box), workers.there(box, x)
    wide: list[str | int] = ["nodes"] if box.nodes[1] > box.nodes[0] else []
    wide += ["gpus"] if box.gpus[1] > box.gpus[0] * (1 + EPS) else []
    if workers.split_batch and box.samples[1] > box.samples[0] * (1 + EPS):
        wide.append("samples")
    keys = enumerate(box.keys[:-1])
    wide += [i for i, (low, high) in keys if high > low * (1 + EPS)]
    # What a range alone adds to the corner; where that explains little, ranges act together (a
    # slow link matters only where there are several nodes): what it alone takes from the point.
    points = [corner, there]
    points += [_moved(corner, there, name) for name in wide]
    points += [_moved(there, corner, name) for name in wide]
    steps = workers.steps_s(points)
    flattery = math.log(max(steps[1] / steps[0], 1.0))
    added = np.log(np.maximum(steps[2 : 2 + len(wide)] / steps[0], 1.0))
    if added.max(initial=0.0) < _EXPLAINS * flattery:
        added = np.log(np.maximum(steps[1] / steps[2 + len(wide) :], 1.0))
    return dict(zip(wide, added.tolist(), strict=True))


def other_effects(workers: SynchronousWorkers, box: Box, x: Floats) -> Effects:
    """Return the effects of ranges that do not change the step."""
    effects: Effects = {}
    used = x > 1e-6
    low, high = box.keys[-1]
    if high > low * (1 + EPS) and used.any():
        needed = float(workers.needs_gpus[used].max())
        effects[len(box.keys) - 1] = math.log(max(needed / float(x @ workers.gpus), 1.0))
    if workers.by_batch and box.samples[1] > box.samples[0] * (1 + EPS):
        there = into(box.samples, float(x @ workers.samples))
        effects["samples"] = math.log(workers.updates(there) / workers.updates(box.samples[1]))
    if box.nodes[0] == 2 < box.nodes[1] and workers.ring and float(x.sum()) < 2.5:
        effects["nodes"] = math.log(1 + float(workers.keys[TWO_NODE_LOSS].max()))
    if box.events[1] > box.events[0] * (1 + EPS):
        there = into(box.events, float(x @ workers.context.hazard))
        stretch = workers.stops(there).factor / workers.stops(box.events[0]).factor
        effects["events"] = math.log(stretch)
    return effects


def _moved(corner: Corner, to: Corner, name: str | int) -> Corner:
    """Return a place with one of its figures taken from another."""
    if isinstance(name, int):
        keys = (*corner.keys[:name], to.keys[name], *corner.keys[name + 1 :])
        return replace(corner, keys=keys)
    fields = {name: getattr(to, name)}
    return replace(corner, **fields)
