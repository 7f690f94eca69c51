"""How workers slow each other down at the parameter servers: a closed queueing network.

A worker computes, visits the parameter server (PS), and repeats. The server is a chain of stations
(its CPU, or its link inbound and outbound), each shared fairly between the workers present:

    visit_s    seconds a lone worker spends at the station
    demand_s   seconds of the whole station that one step consumes; its capacity is 1 / demand_s

With k workers present a station serves min(k / visit_s, 1 / demand_s) steps/s. Such stations have
an exact product-form solution that does not depend on the distribution of service times (BCMP:
processor sharing), so there is no variance to fit. Norton's theorem folds the chain into one:

    mu_k = H(k-1) / H(k),   H = convolution over the stations of h_s(k) = prod_(j<=k) 1 / mu_s(j)

The product form has workers meet by chance. At a chain of links they meet less: TCP shares a link
unevenly, so who met is thrown apart, and stays so, as all transfers are of one size. If workers met
only where a link is full, the chain would serve min(k / visit_s, 1 / demand_s), visit_s that of the
whole chain. Real links are between the two, and `in_step` takes their geometric mean.

N equal workers that think for Z = T - sum(visit_s) seconds, T the step of a lone worker, reach

    X = sum_k p_k * mu_k,   p_k ~ N! / (N-k)! * prod_(j<=k) 1 / (Z * mu_j).

Workers of different speed push the same bytes, so only Z differs between them. They wait equally
long, W, and stand for N equal workers of the same mean step M(W) = N / sum_i 1 / (T_i + W):

    M(W0) = N / mu_N                     the wait at a server that never idles, or 0
    M(W)  = N / X,  X at T = M(W0) - W0  so the cluster makes X steps/s, never more than the server

Worker i then makes 1 / (T_i + W) steps/s. With compute times up to 10 (100) times apart, X is off
the exact mixed solution by 0.2 % (0.4 %) on average and 3 % (8 %) at worst, a single worker's speed
by 2 % on average and 15 % at worst. Solving M(W) = N / X(M(W) - W) to the end costs more and comes
out no closer.

Two simpler rules stand beside it: `spotdnn`, the paper's formula, and `none`, where speeds add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST_THINK_FRACTION = 1e-9  # of T: the recurrence divides by it
_NEWTON_STEPS = 4
_RESCALE_EVERY = 16  # rounds of the recurrence between guards against overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One shared resource of a parameter server."""

    visit_s: float
    demand_s: float

    def rates(self, most_workers: int) -> Floats:
        """Return steps/s with 1, 2, ... workers present."""
        present = np.arange(1.0, most_workers + 1)
        return np.minimum(present / max(self.visit_s, self.demand_s), 1 / self.demand_s)


@dataclass(frozen=True, slots=True)
class SharedServer:
    """A parameter server as one station: its service rate by the number of workers present."""

    visit_s: float
    rates: Floats  # rates[k - 1] with k workers

    @classmethod
    def of(
        cls, stations: Sequence[Station], *, most_workers: int, in_step: bool = False
    ) -> "SharedServer":
        """Fold a chain of stations into one, for up to `most_workers` workers."""
        used = tuple(station for station in stations if station.demand_s > 0)
        visit_s = sum(max(s.visit_s, s.demand_s) for s in used)
        rates = _folded_rates(used, most_workers)
        if in_step and len(used) > 1:
            whole = Station(visit_s=visit_s, demand_s=max(s.demand_s for s in used))
            rates = np.sqrt(rates * whole.rates(most_workers))
        return cls(visit_s, rates)


def waits(counts: Floats, lone_step_s: Floats, server: SharedServer) -> Floats:
    """Return the seconds each step waits for other workers, one entry per fleet.

    Args:
        counts: workers of each class in each fleet, shape (classes, fleets).
        lone_step_s: step of one worker alone, by class, shape (classes,) or (classes, fleets).
        server: the parameter server.
    """
    workers = counts.sum(axis=0)
    alone = lone_step_s if lone_step_s.ndim == 2 else lone_step_s[:, None]
    wait: Floats = np.zeros_like(workers)
    if not np.isfinite(server.rates[0]):
        return wait
    saturated_s = workers / server.rates[workers.astype(np.intp) - 1]
    wait = _wait_for(saturated_s, counts, alone, wait)
    equal = workers / (counts / (alone + wait)).sum(axis=0) - wait
    return _wait_for(workers / cluster_speed(workers, equal, server), counts, alone, wait)


def _wait_for(mean_step_s: Floats, counts: Floats, alone: Floats, wait: Floats) -> Floats:
    """Solve M(W) = mean_step_s by Newton; M is concave, so the steps come from below."""
    workers = counts.sum(axis=0)
    for _ in range(_NEWTON_STEPS):
        gaps = 1 / (alone + wait)
        rates = counts * gaps
        speed = rates.sum(axis=0)
        slope = workers * (rates * gaps).sum(axis=0) / speed**2
        wait = np.maximum(wait + (mean_step_s - workers / speed) / slope, 0.0)
    return wait


def cluster_speed(workers: Floats, lone_step_s: Floats, server: SharedServer) -> Floats:
    """Return the steps/s of equal workers, one entry per fleet."""
    think = np.maximum(lone_step_s - server.visit_s, _LEAST_THINK_FRACTION * lone_step_s)
    weight, total, served = np.ones_like(think), np.ones_like(think), np.zeros_like(think)
    for k in range(int(workers.max())):
        rate = server.rates[k]
        weight = weight * (np.maximum(workers - k, 0.0) / (think * rate))
        total += weight
        served += weight * rate
        if k % _RESCALE_EVERY == _RESCALE_EVERY - 1:
            scale = 1 / total
            weight, served, total = weight * scale, served * scale, np.ones_like(total)
    speed: Floats = served / total
    return speed


@lru_cache(maxsize=256)  # the same servers come back in every zone that a planner looks at
def _folded_rates(stations: tuple[Station, ...], most_workers: int) -> Floats:
    """Return the service rates of a chain as those of one station."""
    if not stations:
        return np.full(most_workers, np.inf)
    folded = reduce(_convolve_logs, [_log_products(s.rates(most_workers)) for s in stations])
    rates: Floats = np.exp(folded[:-1] - folded[1:])
    rates.flags.writeable = False
    return rates


def _log_products(rates: Floats) -> Floats:
    """Return log h(k) for k = 0, 1, ...; h itself overflows when hundreds wait on slow links."""
    return np.concatenate(([0.0], -np.cumsum(np.log(rates))))


def _convolve_logs(a: Floats, b: Floats) -> Floats:
    return np.array([np.logaddexp.reduce(a[: k + 1] + b[k::-1]) for k in range(len(a))])


def spotdnn_bandwidth_mbps(
    workers: Floats, *, requested_mbps: float, server_mbps: float, slope: float, offset: float
) -> Floats:
    """Return what one worker gets of the server's link by spotDNN's formula.

    B = B_req while B_req <= B_ps / n, else P B_ps / n + (1 - P) B_req, P = min(a1 sqrt(n) + b1, 1).
    """
    share = server_mbps / workers
    crowding = np.clip(slope * np.sqrt(workers) + offset, 0.0, 1.0)
    crowded = crowding * share + (1 - crowding) * requested_mbps
    return np.where(requested_mbps <= share, requested_mbps, crowded)
