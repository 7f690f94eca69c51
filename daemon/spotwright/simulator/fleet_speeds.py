"""How fast simulated fleets train: the model that plans with, asked once for each fleet."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.interruption import checkpoint_s, event_rates, young_daly_interval_s
from spotwright.usecases.fleet_choices import FleetChoices, Question


@dataclass(frozen=True, slots=True)
class FleetSpeed:
    """What a fleet does that nothing happens to."""

    goal_per_s: float  # what is lost to saving taken off
    save_every_s: float  # infinite: nothing is lost with a node


STANDING_STILL = FleetSpeed(0.0, math.inf)


class FleetSpeeds:
    """Speeds of one job's fleets; runs of the same job may share it."""

    def __init__(self, choices: FleetChoices, *, checkpoint_every_s: float | None = None) -> None:
        self._choices, self._every_s = choices, checkpoint_every_s
        self._known: dict[object, FleetSpeed] = {}
        self._alone: dict[Pool, float] = {}

    @property
    def choices(self) -> FleetChoices:
        """The fleets that the job could have."""
        return self._choices

    @property
    def is_asynchronous(self) -> bool:
        """Whether a lost worker leaves the others alone."""
        return self._choices.job.workload.strategy is Strategy.ASP_PS

    def of(self, workers: Mapping[Pool, int], servers: Mapping[Pool, int]) -> FleetSpeed:
        """Return the speed of workers that train together; 0 where they cannot."""
        key = (frozenset(workers.items()), frozenset(servers.items()))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._figured(workers, servers)
        return found

    def weight(self, pool: Pool, servers: Mapping[Pool, int]) -> float:
        """Return what one node of a pool does alone, to weigh nodes against each other."""
        if pool not in self._alone:
            self._alone[pool] = self.of({pool: 1}, servers).goal_per_s or 1.0
        return self._alone[pool]

    def _figured(self, workers: Mapping[Pool, int], servers: Mapping[Pool, int]) -> FleetSpeed:
        choice = self._choices.of(workers, servers, Question()) if workers else None
        if choice is None:
            return STANDING_STILL
        has_spot = any(pool.market is Market.SPOT for pool in workers)
        if self.is_asynchronous or not has_spot:
            return FleetSpeed(1 / choice.work_s, math.inf)
        workload = self._choices.job.workload
        save_s = checkpoint_s(workload)
        every_s = self._every_s
        if every_s is None:
            rate = float(event_rates(workload, choice.fleet.nodes).per_hour[0])
            every_s = young_daly_interval_s(save_s, rate) if rate > 0 else math.inf
        slowed = 1.0 if math.isinf(every_s) else every_s / (every_s + save_s)
        return FleetSpeed(slowed / choice.work_s, every_s)
