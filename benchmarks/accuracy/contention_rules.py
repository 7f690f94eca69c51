"""Other rules for workers that share a parameter server, from the same facts as the product's.

    T   step of a lone worker on one server        D   seconds of the busiest server per step
    n   workers                                    v   squared variation of the step, 0 to 1

Every rule returns the steps/s of the cluster. Mean-value analysis (MVA) adds workers one by one:
an arriving worker finds the queue Q and the utilisation U of one worker less.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

import numpy as np

from benchmarks.accuracy.fluid import simulated_speed
from spotwright.perfmodel.contention import SharedServer, Station, cluster_speed

CORES = 2.0  # physical cores of the 4-vCPU server; one worker is served by one at a time
_STARTS = 8  # simulations of each cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A cluster to predict, and all that is known of it."""

    workers: int
    lone_step_s: float  # T, on one server
    one_server_demand_s: float
    demand_s: float  # D, on the servers in use
    link_s: float  # of the busiest server in one direction
    variation: float = 1.0  # v

    @property
    def think_s(self) -> float:
        """Seconds away from a server that serves one worker at a time."""
        return self.lone_step_s - self.one_server_demand_s

    @property
    def core_think_s(self) -> float:
        """Seconds away from a server that gives each worker one core."""
        return self.lone_step_s - CORES * self.one_server_demand_s


def additive(case: Case) -> float:
    """Add the speeds of lone workers (CM-DARE)."""
    return case.workers / (case.think_s + case.demand_s)


def hard_cap(case: Case) -> float:
    """Add speeds until the server is full."""
    return min(additive(case), 1 / case.demand_s)


def exact_mva(case: Case) -> float:
    """R = D (1 + Q): exponential service."""
    return _mva(case, lambda queue, _: 1 + queue)


def half_residual_mva(case: Case) -> float:
    """R = D (1 + Q - U + U / 2): constant service, half of it left on arrival."""
    return _mva(case, lambda queue, busy: 1 + max(0.0, queue - busy) + busy / 2)


def residual_mva(case: Case) -> float:
    """R = D (1 + Q - U + U (1 + v) / 2): the residual by the variation of the step."""
    v = case.variation
    return _mva(case, lambda queue, busy: 1 + max(0.0, queue - busy) + busy * (1 + v) / 2)


def scaled_mva(case: Case) -> float:
    """R = D (1 + v Q)."""
    return _mva(case, lambda queue, _: 1 + case.variation * queue)


def variance_mix(case: Case) -> float:
    """Mix the waits of regular workers and of processor sharing on cores, weighted by v."""
    lone_s = case.core_think_s + CORES * case.demand_s
    regular_s = max(0.0, case.workers * case.demand_s - lone_s)
    shared_s = case.workers / processor_sharing(case) - lone_s
    wait_s = (1 - case.variation) * regular_s + case.variation * shared_s
    return case.workers / (lone_s + wait_s)


def processor_sharing(case: Case) -> float:
    """Sum the product form term by term: what the product's recurrence must agree with."""
    n, logs, rates = case.workers, [0.0], [0.0]
    for k in range(1, n + 1):
        rates.append(min(k / (CORES * case.demand_s), 1 / case.demand_s))
        logs.append(logs[-1] + log((n - k + 1) / (case.core_think_s * rates[k])))
    top = max(logs)
    weights = [exp(x - top) for x in logs]
    return sum(w * r for w, r in zip(weights, rates, strict=True)) / sum(weights)


def three_stations(case: Case) -> float:
    """Queue for the inbound link, then the CPU, then the outbound link."""
    link = Station(visit_s=case.link_s, demand_s=case.link_s)
    cpu = Station(visit_s=CORES * case.demand_s, demand_s=case.demand_s)
    server = SharedServer.of([link, cpu, link], most_workers=case.workers)
    lone_s = case.core_think_s + CORES * case.demand_s
    return float(cluster_speed(np.array([float(case.workers)]), np.array([lone_s]), server)[0])


def fluid_regular(case: Case) -> float:
    """Simulate max-min fair flows of workers that compute equally long each step."""
    return _fluid(case, random_compute=False)


def fluid_random(case: Case) -> float:
    """Simulate max-min fair flows of workers with exponential compute times."""
    return _fluid(case, random_compute=True)


RIVALS: dict[str, Callable[[Case], float]] = {
    "additive": additive,
    "hard cap": hard_cap,
    "exact MVA": exact_mva,
    "half-residual MVA": half_residual_mva,
    "fluid max-min": fluid_regular,
}
CONSIDERED: dict[str, Callable[[Case], float]] = {
    "MVA, R = D(1 + Q - U + U(1+v)/2)": residual_mva,
    "MVA, R = D(1 + vQ)": scaled_mva,
    "sharing on cores, wait scaled by v": variance_mix,
}
CHECKS: dict[str, Callable[[Case], float]] = {
    "link, CPU and link in a chain": three_stations,
    "fluid max-min, random compute": fluid_random,
    "product form, term by term": processor_sharing,
}


def _mva(case: Case, residence: Callable[[float, float], float]) -> float:
    queue = busy = speed = 0.0
    for k in range(1, case.workers + 1):
        visit_s = case.demand_s * residence(queue, busy)
        speed = min(k / (case.think_s + visit_s), 1 / case.demand_s)
        queue, busy = k - speed * case.think_s, speed * case.demand_s
    return speed


def _fluid(case: Case, *, random_compute: bool) -> float:
    """Average over starts: regular workers keep much of the order they began in."""
    speeds = [
        simulated_speed(
            case.workers,
            compute_s=case.core_think_s,
            cpu_s=case.demand_s,
            link_s=case.link_s,
            cores=CORES,
            random_compute=random_compute,
            seed=seed,
        )
        for seed in range(_STARTS)
    ]
    return sum(speeds) / len(speeds)
