"""Lower bounds of how long a run takes that interruptions stop.

With r events per second, s seconds per checkpoint and R per restart, a run of w seconds takes
(w / i) (1/r + R) (exp(r (i + s)) - 1), i the interval between checkpoints or the whole run. Since
exp(x) - 1 >= x + x^2 / 2, whatever i is:

    at least  w (1 + r R) (1 + r s + sqrt(2 r (s + r s^2 / 2)))     the best interval, many of them
    at least  (w + s) (1 + r R)                                     one checkpoint
"""

import math
from typing import NamedTuple


class RunBound(NamedTuple):
    """A run of w seconds takes at least max(factor * w, (w + extra_s) * restarted)."""

    factor: float
    restarted: float
    extra_s: float

    def least_s(self, work_s: float, *, below: float = 1.0) -> float:
        """Return the bound for work / D seconds of work, times D, D being at least `below`."""
        return max(self.factor * work_s, (work_s + self.extra_s * below) * self.restarted)


def run_bound(events_per_hour: float, *, save_s: float, restart_s: float) -> RunBound:
    """Return the bound for at least so many events per hour."""
    if events_per_hour <= 0:
        return RunBound(1.0, 1.0, 0.0)
    rate = events_per_hour / 3600
    restarted = 1 + rate * restart_s
    intervals = 1 + rate * save_s + math.sqrt(2 * rate * (save_s + rate * save_s**2 / 2))
    return RunBound(restarted * intervals, restarted, save_s)
