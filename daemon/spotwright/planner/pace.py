"""How much of a job asynchronous workers can do in a second at most: a line in y, V and f.

With y steps/s, V samples/s and B = V / y, a job of j updates takes j / y seconds, so that y / j is
the part of it done in a second. spotDNN's law has j = k(R) (c2 B + c3) - c1. With s = f / V the
share of the fastest worker, R is at least

    r(s) = (1 - s) sqrt(n / (n - 1))    by Cauchy on the other workers' shares

so that y / j is at most y q(B, s), q = 1 / (k(r(s)) (c2 B + c3) - c1), which is convex in B and in
s: its chords over the box lie above, first in one, then in the other. Interpolated between the four
corners it is a sum of y, y B = V, y B s = f and y s; the last is bounded by a line in the other
three (McCormick). Where a constant R says more than r(s), it takes its place.

A noise-scale law makes y / j concave in y and V: there a tangent lies above.
"""

import math
from typing import NamedTuple

from spotwright.domain.workload import NoiseScaleLaw
from spotwright.planner.asynchronous_workers import AsynchronousWorkers, Box

_THIN = 1e-9  # relative width below which a range is one value


class Pace(NamedTuple):
    """per_step * y + per_sample * V + per_fastest * f: the part of a job done in a second."""

    per_step: float
    per_sample: float
    per_fastest: float = 0.0

    def at(self, steps: float, samples: float, fastest: float) -> float:
        """Return the bound at given steps/s, samples/s and samples/s of the fastest worker."""
        return self.per_step * steps + self.per_sample * samples + self.per_fastest * fastest


def pace(workers: AsynchronousWorkers, box: Box) -> Pace:
    """Bound the pace of every fleet in a box."""
    if not workers.per_step:
        return Pace(0.0, 1 / workers.updates(box.n, 1.0, 0.0))
    law = workers.context.job.workload.convergence
    if workers.uses_batch and workers.spotdnn is None and isinstance(law, NoiseScaleLaw):
        return _tangent(law, math.sqrt(box.batch[0] * box.batch[1]))
    coefficient = workers.coefficient(box)
    if workers.spotdnn is None:
        return Pace(1 / workers.updates(box.n, box.batch[1], coefficient), 0.0)
    if workers.raw_updates(box.n, box.batch[1], coefficient) <= 1.0:
        return Pace(1.0, 0.0)  # a goal that may be reached at once
    flat = _in_batch(workers, box, coefficient)
    if box.n == 1 or box.share[1] - box.share[0] < _THIN:
        return flat
    return _lowest(box, [flat, *_in_batch_and_share(workers, box)])


def _tangent(law: NoiseScaleLaw, batch: float) -> Pace:
    per_batch = 1 / (law.minimum_steps * (batch + law.noise_scale_samples) ** 2)
    return Pace(batch**2 * per_batch, law.noise_scale_samples * per_batch)


def _lowest(box: Box, paces: list[Pace]) -> Pace:
    """Return the bound that is lowest in the middle of the box."""
    batch, share = sum(box.batch) / 2, sum(box.share) / 2
    return min(paces, key=lambda p: p.at(1.0, batch, batch * share))


def _in_batch(workers: AsynchronousWorkers, box: Box, coefficient: float) -> Pace:
    """Return the chord in B at a constant R."""
    low, high = box.batch
    least, most = (1 / workers.raw_updates(box.n, batch, coefficient) for batch in box.batch)
    if high <= low * (1 + _THIN):
        return Pace(0.0, most / low)
    slope = (most - least) / (high - low)
    return Pace(least - slope * low, slope)


def _in_batch_and_share(workers: AsynchronousWorkers, box: Box) -> list[Pace]:
    """Return the bounds by both chords; none where the law says nothing at a corner."""
    (b0, b1), (s0, s1) = box.batch, box.share
    crowd = math.sqrt(box.n / (box.n - 1))
    updates = [
        [workers.raw_updates(box.n, b, max(0.0, 1 - s) * crowd) for s in box.share]
        for b in box.batch
    ]
    if min(min(row) for row in updates) <= 1.0:
        return []
    (q00, q01), (q10, q11) = ([1 / j for j in row] for row in updates)
    if b1 <= b0 * (1 + _THIN):  # V q(s) / B
        slope = (q11 - q10) / (s1 - s0)
        return [Pace(0.0, (q10 - slope * s0) / b0, slope / b0)]
    in_batch, in_share = (q10 - q00) / (b1 - b0), (q01 - q00) / (s1 - s0)
    both = (q11 - q10 - q01 + q00) / ((b1 - b0) * (s1 - s0))
    line = Pace(q00 - in_batch * b0 - in_share * s0 + both * b0 * s0, in_batch - both * s0, both)
    weight = in_share - both * b0  # of y s, which the corner (s, b) bounds: s y + (f - s V) / b
    corners = ((s0, b0), (s1, b1)) if weight > 0 else ((s1, b0), (s0, b1))
    return [
        Pace(
            line.per_step + weight * s,
            line.per_sample - weight * s / b,
            line.per_fastest + weight / b,
        )
        for s, b in corners
    ]
