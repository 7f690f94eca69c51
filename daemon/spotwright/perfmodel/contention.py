"""How workers slow each other down at the parameter servers: a closed queueing network.

A worker computes, visits the parameter server (PS), and repeats. The server is a chain of stations,
its inbound link, its CPU and its outbound link, each shared fairly between the workers present:

    visit_s    seconds a lone worker spends at the station
    demand_s   seconds of the whole station that one step consumes; its capacity is 1 / demand_s

With k workers present a station serves min(k / visit_s, 1 / demand_s) steps/s. Such stations have
an exact product-form solution that does not depend on the distribution of service times (BCMP:
processor sharing), so there is no variance to fit. Norton's theorem folds the chain into one:

    mu_k = H(k-1) / H(k),   H = convolution over the stations of h_s(k) = prod_(j<=k) 1 / mu_s(j)

and N equal workers that think for Z = T - sum(visit_s) seconds, T the step of a lone worker, reach

    X = sum_k p_k * mu_k,   p_k ~ N! / (N-k)! * prod_(j<=k) 1 / (Z * mu_j).

Workers of different speed push the same bytes, so only Z differs between them. They wait equally
long: W is that of N equal workers with the same total speed, found in two rounds (within 0.3 % of
the exact mixed solution on average, 3 % at worst). Worker i then makes 1 / (T_i + W) steps/s.

Two simpler rules stand beside it: `spotdnn`, the paper's formula, and `none`, where speeds add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST_THINK_FRACTION = 0.02  # of T: some of every step is compute
_ROUNDS = 2
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
    def of(cls, stations: Sequence[Station], *, most_workers: int) -> "SharedServer":
        """Fold a chain of stations into one, for up to `most_workers` workers."""
        used = [station for station in stations if station.demand_s > 0]
        visit_s = sum(max(s.visit_s, s.demand_s) for s in used)
        if not used:
            return cls(0.0, np.full(most_workers, np.inf))
        unit_s = max(station.demand_s for station in used)
        folded = np.ones(1)
        for station in used:
            times = np.concatenate(([1.0], 1 / (station.rates(most_workers) * unit_s)))
            folded = np.convolve(folded, np.cumprod(times))[: most_workers + 1]
        return cls(visit_s, folded[:-1] / folded[1:] / unit_s)


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
    for _ in range(_ROUNDS):
        equal = workers / (counts / (alone + wait)).sum(axis=0) - wait
        wait = np.maximum(workers / cluster_speed(workers, equal, server) - equal, 0.0)
    return np.asarray(wait, dtype=np.float64)


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
