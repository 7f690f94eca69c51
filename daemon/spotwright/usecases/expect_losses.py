"""What a job is to expect of interruptions: as seen while it was watched, else as elsewhere."""

import math
from collections.abc import Mapping

from spotwright.domain.offer import Pool
from spotwright.domain.steering import Weather
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.interruption import checkpoint_s, young_daly_interval_s

# Until losses and returns have been seen, spot capacity is taken to be lost every three hours and
# to be gone for one: between the two V100 series of the October 2022 availability campaign.
_PRIOR_EVENTS, _PRIOR_UP_HOURS, _PRIOR_DOWN_HOURS = 2.0, 6.0, 2.0
_NOTICE_S = 110.0  # of the two minutes that AWS gives


def change_rates(seen: Weather) -> tuple[float, float]:
    """Return how often in an hour spot capacity is lost, and how often it returns."""
    losses = (_PRIOR_EVENTS + seen.losses) / (_PRIOR_UP_HOURS + seen.up_hours)
    returns = (_PRIOR_EVENTS + seen.returns) / (_PRIOR_DOWN_HOURS + seen.down_hours)
    return _rounded(losses), _rounded(returns)


def hazards_of(weather: Mapping[Pool, Weather]) -> dict[Pool, float]:
    """Return the losses per hour of pools that lost nodes while they were watched."""
    return {
        pool: _rounded((_PRIOR_EVENTS / 2 + seen.losses) / (_PRIOR_UP_HOURS / 2 + seen.up_hours))
        for pool, seen in weather.items()
        if seen.losses
    }


def lost_work_s(workload: Workload, weather: Mapping[Pool, Weather], *, saves: bool) -> float:
    """Return how much work goes with a node: what cannot be saved within a notice."""
    save_s = checkpoint_s(workload)
    if workload.strategy is Strategy.ASP_PS:
        return 0.0  # the servers have it
    if save_s <= _NOTICE_S and saves:
        return save_s
    return young_daly_interval_s(save_s, _worst_per_hour(weather))


def worst_overhead(workload: Workload, weather: Mapping[Pool, Weather]) -> float:
    """Return by how much interruptions may stretch a run in the worst of the pools."""
    save_s, worst = checkpoint_s(workload), _worst_per_hour(weather)
    saving = math.sqrt(2 * save_s * worst / 3600)
    return 2 * (worst * (workload.spot.restart_s + save_s) / 3600 + saving)


def _worst_per_hour(weather: Mapping[Pool, Weather]) -> float:
    return max(hazards_of(weather).values(), default=_PRIOR_EVENTS / _PRIOR_UP_HOURS)


def _rounded(rate: float) -> float:
    """Round a rate to a factor of 1.4: it is known no better, and answers can be used again."""
    return float(2 ** (round(math.log2(rate) * 2) / 2))
