"""A fluid simulation: workers compute, push and pull; flows share the server max-min fairly.

A push needs half of the step's CPU seconds and one direction of the link, a pull the other half and
the other direction. No flow gets more than one core. Rates change whenever a flow starts or ends.
"""

import math
import random
from dataclasses import dataclass, field

_STEPS_PER_WORKER = 300
_WARM_UP = 0.2  # of the steps, not counted
_COMPUTE, _PUSH, _PULL = 0, 1, 2


@dataclass(slots=True)
class _Worker:
    phase: int = _COMPUTE
    left: float = field(default=0.0)  # seconds of compute, or the part of a flow


def simulated_speed(
    workers: int,
    *,
    compute_s: float,
    cpu_s: float,
    link_s: float,
    cores: float,
    random_compute: bool,
    seed: int,
) -> float:
    """Return the steps/s of a cluster."""
    draw = random.Random(seed)
    fleet = [_Worker(left=compute_s * draw.random()) for _ in range(workers)]
    wanted = workers * _STEPS_PER_WORKER
    first, started_s = int(_WARM_UP * wanted), 0.0
    now_s, steps = 0.0, 0
    while steps < wanted:
        rates = _rates(fleet, cpu_s=cpu_s / 2, link_s=link_s, cores=cores)
        dt = min(worker.left / rates[worker.phase] for worker in fleet)
        now_s += dt
        for worker in fleet:
            worker.left -= dt * rates[worker.phase]
            if worker.left > 1e-12:
                continue
            steps += worker.phase == _PULL
            worker.phase = (worker.phase + 1) % 3
            next_s = draw.expovariate(1 / compute_s) if random_compute else compute_s
            worker.left = next_s if worker.phase == _COMPUTE else 1.0
        if not started_s and steps >= first:
            started_s, first = now_s, steps
    return (steps - first) / (now_s - started_s)


def _rates(
    fleet: list[_Worker], *, cpu_s: float, link_s: float, cores: float
) -> tuple[float, float, float]:
    """Return the progress per second of a computing, a pushing and a pulling worker."""
    counts = {phase: sum(w.phase == phase for w in fleet) for phase in (_PUSH, _PULL)}
    ceilings = {
        phase: min(1 / (cores * cpu_s), 1 / (count * link_s) if count else math.inf)
        for phase, count in counts.items()
    }
    rates, capacity, waiting = [1.0, 0.0, 0.0], 1 / cpu_s, sum(counts.values())
    for phase in sorted(counts, key=lambda p: ceilings[p]):
        if counts[phase]:
            rates[phase] = min(ceilings[phase], capacity / waiting)
            capacity -= counts[phase] * rates[phase]
            waiting -= counts[phase]
    return rates[0], rates[1], rates[2]
