"""How much of a job asynchronous workers can do in a second at most: a line in y and V over a box.

With y steps/s, V samples/s and B = V / y, a job of j updates takes j / y seconds, so that y / j is
the part of it done in a second. spotDNN's law has j = k(R) (c2 B + c3) - c1, and R is at least

    r(V) = (1 - f / V) sqrt(n / (n - 1))    f the fastest worker's samples/s: by Cauchy on the others

so y / j is at most y q(B, V), q = 1 / (k(r(V)) (c2 B + c3) - c1). At fixed V it is convex in B: its
chord over the box lies above. At fixed B, psi(V) = V q(B, V) is convex in V, because it is V p(1/V)
with p convex: again the chord a + b V lies above. With both, and t = y / V = 1 / B,

    y / j <= [(a0 + b0 V) (B1 t - 1) + (a1 + b1 V) (1 - B0 t)] / (B1 - B0)

in which V t = y, and t itself is bounded by a line in y and V (McCormick): exact at three corners of
the box. Where a constant R says more than r(V), a0 = a1 = 0.

A noise-scale law makes y / j concave in y and V: there a tangent lies above.
"""

import math
from typing import NamedTuple

from spotwright.domain.workload import NoiseScaleLaw
from spotwright.planner.asynchronous_workers import EPS, AsynchronousWorkers, Box, Range

_THIN = 1e-7  # relative width below which a range is one value


class Pace(NamedTuple):
    """per_step * y + per_sample * V + constant: the part of a job done in a second, at most."""

    per_step: float
    per_sample: float
    constant: float = 0.0

    def at(self, steps: float, samples: float) -> float:
        """Return the bound at given steps/s and samples/s."""
        return self.per_step * steps + self.per_sample * samples + self.constant


def pace(workers: AsynchronousWorkers, box: Box) -> Pace:
    """Bound the pace of every fleet in a box."""
    if not workers.per_step:
        return Pace(0.0, 1 / workers.updates(box.n, 1.0, 0.0))
    law = workers.context.job.workload.convergence
    if workers.uses_batch and workers.spotdnn is None and isinstance(law, NoiseScaleLaw):
        middle = math.sqrt(box.batch[0] * box.batch[1])
        with_noise = middle + law.noise_scale_samples
        rise = law.noise_scale_samples / (law.minimum_steps * with_noise**2)
        return Pace(middle**2 / (law.minimum_steps * with_noise**2), rise)
    coefficient = workers.coefficient(box)
    flat = 1 / workers.updates(box.n, box.batch[1], coefficient)
    if workers.spotdnn is None:
        return Pace(flat, 0.0)
    if workers.raw_updates(box.n, box.batch[1], coefficient) <= 1.0:
        return Pace(flat, 0.0)  # a goal that is reached at once
    return _best(box, [_flat_coefficient(workers, box, coefficient), _by_share(workers, box)])


def _best(box: Box, paces: list[Pace | None]) -> Pace:
    """Return the line that is lowest in the middle of the box."""
    samples = (box.samples[0] + box.samples[1]) / 2
    steps = samples * (1 / box.batch[0] + 1 / box.batch[1]) / 2
    return min((p for p in paces if p is not None), key=lambda p: p.at(steps, samples))


def _flat_coefficient(workers: AsynchronousWorkers, box: Box, coefficient: float) -> Pace:
    """Return the chord in B at the least R."""
    chords = [(0.0, 1 / workers.raw_updates(box.n, b, coefficient)) for b in box.batch]
    return _combined(box, chords[0], chords[1])


def _by_share(workers: AsynchronousWorkers, box: Box) -> Pace | None:
    """Return the chords in B and V, R following from the share of the fastest worker."""
    n, (low, high) = box.n, box.samples
    if n == 1 or high <= low * (1 + _THIN):
        return None
    ends = [(v, (1 - min(1.0, box.fastest[1] / v)) * math.sqrt(n / (n - 1))) for v in (low, high)]
    chords = []
    for batch in box.batch:
        updates = [workers.raw_updates(n, batch, r) for _, r in ends]
        if min(updates) <= 1.0:
            return None
        first, last = (v / j for (v, _), j in zip(ends, updates, strict=True))
        slope = (last - first) / (high - low)
        chords.append((first - slope * low, slope))
    return _combined(box, chords[0], chords[1])


def _combined(box: Box, least: Range, most: Range) -> Pace:
    """Join the chords a + b V at the least and at the largest batch."""
    (b0, b1), (a0, s0), (a1, s1) = box.batch, least, most
    if b1 <= b0 * (1 + _THIN):
        return Pace(0.0, s1 / b0 * (1 + EPS), a1 / b0 * (1 + EPS))
    width = b1 - b0
    weight = (a0 * b1 - a1 * b0) / width  # of t = y / V
    per_step, per_sample = (s0 * b1 - s1 * b0) / width, (s1 - s0) / width
    constant = (a1 - a0) / width
    if weight == 0.0:
        return Pace(per_step, per_sample, constant)
    low, high = box.samples
    corners = ((1 / b1, low), (1 / b0, high)) if weight > 0 else ((1 / b1, high), (1 / b0, low))
    return _best(
        box,
        [
            Pace(per_step + weight / v, per_sample - weight * t / v, constant + weight * t)
            for t, v in corners
        ],
    )
