"""How fast workers that queue for parameter servers can be at most.

With n workers, z their wait at a server that never idles and S = sum x / (T + z), the model's speed
is X_n(n / S - z), X_n(E) the speed of n equal workers of lone step E (perfmodel/contention.py). It
grows with S and is concave in it, so that each tangent bounds it by a line in x: everywhere for
z = 0, and for z > 0 where S is at least the full server's rate, as it is in boxes that begin there.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from spotwright.perfmodel.contention import SharedServer

Floats = NDArray[np.float64]

_LEAST_THINK_FRACTION = 1e-9
_NEWTON_STEPS = 30


class QueueingBound:
    """n workers at a parameter server, which works differently for each shortest link of theirs."""

    def __init__(self, servers: Sequence[SharedServer], workers: int) -> None:
        """Prepare the weights of 0 to n workers present, a row for each link."""
        rates = np.array([server.rates[:workers] for server in servers])
        start = np.zeros((len(servers), 1))
        logs = np.concatenate((start, np.cumsum(np.log(rates), axis=1)), axis=1)
        self._present = np.arange(workers + 1.0)
        self._log_ways = gammaln(workers + 1) - gammaln(workers + 1 - self._present) - logs
        self._rates = np.concatenate((start, rates), axis=1)
        self._visit_s = np.array([server.visit_s for server in servers])
        self._workers = workers
        self.capacity = rates[:, -1]  # steps/s of a server that never idles, by link

    def speeds(self, s: float, z: float, links: slice) -> tuple[Floats, Floats]:
        """Return the speed at S = s and its slope there, by link."""
        lone_s = self._workers / s - z
        least_s = _LEAST_THINK_FRACTION * max(lone_s, 1e-12)
        think_s = np.maximum(lone_s - self._visit_s[links], least_s)
        logs = self._log_ways[links] - self._present * np.log(think_s)[:, None]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        speeds = (weights * self._rates[links]).sum(axis=1)
        present = (weights @ self._present)[:, None]
        # Centred: where all workers are present nearly always, the difference of means is noise.
        spread = weights * (self._present - present) * (self._rates[links] - speeds[:, None])
        falls = np.where(think_s > least_s, spread.sum(axis=1) / think_s, 0.0)
        return speeds, falls * self._workers / s**2

    def speed(self, s: float, z: float, link: int) -> float:
        """Return the speed at S = s with one link."""
        return float(self.speeds(s, z, slice(link, link + 1))[0][0])

    def waits(self, x: Floats, lone_s: Floats, link: int) -> tuple[float, float]:
        """Return the wait of a fleet, counts possibly fractional, and that at a full server."""
        z = self._wait_for(float(self.capacity[link]), x, lone_s)
        speed = self.speed(float((x / (lone_s + z)).sum()), z, link)
        return self._wait_for(speed, x, lone_s), z

    def _wait_for(self, speed: float, x: Floats, lone_s: Floats) -> float:
        wait = 0.0
        for _ in range(_NEWTON_STEPS):
            rates = x / (lone_s + wait)
            total = float(rates.sum())
            if total <= speed * (1 + 1e-9):
                break
            wait += (1 / speed - 1 / total) * total**2 / float((rates / (lone_s + wait)).sum())
        return wait
