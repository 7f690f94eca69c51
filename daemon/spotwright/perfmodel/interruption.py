"""What spot interruptions cost: hazard, checkpoints, lost work, refill.

A node of a pool from which the share p is taken back in a month (730 h) has the hazard
lambda = -ln(1 - p) / 730 per hour; lifetimes that the job's owner measured override it. The part
`common_shock_fraction` of it takes the whole pool at once, so that n nodes of one pool are not n
independent ones: events of a pool come at

    lambda * (s + (1 - s) * n)                                              per hour.

Synchronous training stops at each event: it loses the work since its last checkpoint and the
restart. The interval is Young and Daly's sqrt(2 * checkpoint_s / event rate), or the whole run if
that is shorter; from one checkpoint to the next it takes

    (1 / rate + restart_s) * (exp(rate * (interval_s + checkpoint_s)) - 1)  seconds on average.

Asynchronous training keeps its parameters on the servers; a lost worker is missing until its
replacement has joined, and only the loss of a server stops the run. A shock to a pool of workers
and servers is one event that does both.

Rates and expected durations are worked out for any number of fleets at once: `counts` has a row per
worker group and a column per fleet.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.laws.checkpoint_law import DEFAULT_CHECKPOINT_LAW
from spotwright.perfmodel.step_model import Floats
from spotwright.perfmodel.survival import kaplan_meier

_HOURS_PER_MONTH = 730.0
UNKNOWN_INTERRUPTION_FRACTION = 0.10  # per month, where the advisor lists none
_STATE_COPIES = 3.0  # a checkpoint holds parameters and two moments
_NEVER_ENDS = 600.0  # events while one interval is saved; kept finite, exp(600) s end nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRisk:
    """How interruptions stretch a run of `work_s` seconds without any."""

    events_per_hour: float
    checkpoint_interval_s: float | None  # None: nothing can be lost
    overhead_fraction: float  # of the time, for checkpoints
    expected_events: float
    expected_loss_s: float  # per event
    expected_s: float  # the whole run
    sd_s: float  # from the randomness of interruptions alone


def hazard_per_hour(workload: Workload, group: NodeGroup) -> float:
    """Return the interruptions per hour of one node.

    What a controller has seen of the pool counts most, then measured lifetimes, then the advisor.
    """
    if group.market is Market.ON_DEMAND or group.offer is None:
        return 0.0
    seen = workload.spot.hazards_per_hour.get(group.offer.pool)
    if seen is not None:
        return seen
    measured = workload.spot.lifetimes.get(group.instance_type.name)
    if measured is not None:
        return kaplan_meier(measured.hours, measured.revoked).mean_hazard_per_hour(
            max(measured.hours)
        )
    share = group.offer.interruption_fraction
    share = UNKNOWN_INTERRUPTION_FRACTION if share is None else share
    return -math.log(1 - share) / _HOURS_PER_MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRates:
    """How often something is taken away; arrays have one entry per fleet."""

    per_hour: Floats  # events, whatever they take
    worker_per_hour: Floats  # those that take workers
    server_per_hour: float  # those that take servers; a shock may take both
    lost_workers_per_hour: Floats  # nodes


class SpotExposure:
    """What can be taken away from fleets of given worker groups with given servers."""

    def __init__(
        self, workload: Workload, workers: Sequence[NodeGroup], servers: Sequence[NodeGroup]
    ) -> None:
        """Prepare for fleets of these groups, whatever the workers' number."""
        self._asynchronous = workload.strategy is Strategy.ASP_PS
        self._save_s, self._restart_s = checkpoint_s(workload), workload.spot.restart_s
        self._shock = shock = workload.spot.common_shock_fraction
        self.hazards = np.array([hazard_per_hour(workload, group) for group in workers])
        pools, served = pool_hazards(workload, workers), pool_hazards(workload, servers)
        self._shocks = shock * np.array(list(pools.values()))
        self._shared_shocks = shock * np.array([served.get(pool, 0.0) for pool in pools])
        self._members = _members(workers, list(pools))
        alone = sum(hazard_per_hour(workload, g) * g.node_count for g in servers)
        self.server_per_hour = shock * sum(served.values()) + (1 - shock) * alone

    def rates(self, counts: Floats) -> EventRates:
        """Return the events per hour; groups of one pool share its shocks."""
        lost = self.hazards @ counts
        worker_per_hour = (1 - self._shock) * lost
        shared_per_hour: Floats | float = 0.0
        if len(self._shocks):
            present = self._present(counts)
            worker_per_hour = worker_per_hour + self._shocks @ present
            shared_per_hour = self._shared_shocks @ present
        return EventRates(
            per_hour=worker_per_hour + (self.server_per_hour - shared_per_hour),
            worker_per_hour=worker_per_hour,
            server_per_hour=self.server_per_hour,
            lost_workers_per_hour=lost,
        )

    def _present(self, counts: Floats) -> NDArray[np.bool_]:
        """Return which pools are in use, (pools, fleets)."""
        if self._members.ndim == 1:
            return np.asarray(counts[self._members] > 0)
        return np.asarray(self._members @ counts > 0)

    def expected_s(self, counts: Floats, work_s: Floats) -> Floats:
        """Return how long runs are expected to take that need `work_s` without interruptions."""
        rates = self.rates(counts)
        stops_per_hour: Floats | float = rates.per_hour
        if self._asynchronous:
            stops_per_hour = rates.server_per_hour
            lost_fraction = rates.lost_workers_per_hour / counts.sum(axis=0)
            work_s = refilled_run_s(work_s, lost_fraction, restart_s=self._restart_s)
        return stopped_run_s(work_s, stops_per_hour, save_s=self._save_s, restart_s=self._restart_s)


def stopped_run_s(
    work_s: Floats | float, events_per_hour: Floats | float, *, save_s: float, restart_s: float
) -> Floats:
    """Return the expected duration of runs that every event sends back to the last checkpoint.

    Without events it is `work_s`: no checkpoints are taken.
    """
    rate: Floats = np.asarray(events_per_hour)
    uninterrupted_s: Floats = np.asarray(work_s)
    if not rate.any():
        return np.asarray(uninterrupted_s + rate)
    per_s = np.where(rate > 0, rate, 1.0) / 3600
    longest_s = np.sqrt(2 * save_s / per_s)  # Young and Daly's
    interval_s = np.minimum(longest_s, uninterrupted_s)
    interval_count = np.maximum(uninterrupted_s / longest_s, 1.0)
    repeats = np.expm1(np.minimum(per_s * (interval_s + save_s), _NEVER_ENDS))
    stopped_s = interval_count * (1 / per_s + restart_s) * repeats
    return np.asarray(np.where(rate > 0, stopped_s, uninterrupted_s))


def refilled_run_s(
    work_s: Floats | float, lost_fraction_per_hour: Floats | float, *, restart_s: float
) -> Floats:
    """Return the expected duration of runs from which workers are missing until replaced."""
    return np.asarray(work_s * (1 + lost_fraction_per_hour * restart_s / 3600))


def uninterrupted_probability(
    workload: Workload, groups: Sequence[NodeGroup], *, hours: float
) -> float:
    """Return the probability that no node is taken within `hours`."""
    return math.exp(-float(event_rates(workload, groups).per_hour[0]) * hours)


def checkpoint_s(workload: Workload) -> float:
    """Return the seconds one checkpoint takes: stated by the job, else by the measured law."""
    if workload.spot.checkpoint_s is not None:
        return workload.spot.checkpoint_s
    return DEFAULT_CHECKPOINT_LAW.seconds(
        checkpoint_bytes=_STATE_COPIES * workload.model.parameter_bytes,
        tensor_count=workload.model.tensor_count,
    )


def young_daly_interval_s(checkpoint_seconds: float, events_per_hour: float) -> float:
    """Return the checkpoint interval that loses least time."""
    return math.sqrt(2 * checkpoint_seconds * 3600 / events_per_hour)


def event_rates(workload: Workload, groups: Sequence[NodeGroup]) -> EventRates:
    """Return the rates of one fleet."""
    workers = [group for group in groups if group.role is Role.WORKER]
    servers = [group for group in groups if group.role is Role.PS]
    counts = np.array([float(group.node_count) for group in workers])
    return SpotExposure(workload, workers, servers).rates(counts[:, None])


def pool_hazards(workload: Workload, groups: Sequence[NodeGroup]) -> dict[Pool, float]:
    """Return the hazard of one node of each pool that nodes are taken from."""
    hazards = {g.offer.pool: hazard_per_hour(workload, g) for g in groups if g.offer}
    return {pool: hazard for pool, hazard in hazards.items() if hazard > 0}


def spot_risk(workload: Workload, groups: Sequence[NodeGroup], *, work_s: float) -> SpotRisk:
    """Return what interruptions do to a run."""
    rates = event_rates(workload, groups)
    rate = float(rates.per_hour[0])
    if rate == 0:
        return SpotRisk(
            events_per_hour=0.0,
            checkpoint_interval_s=None,
            overhead_fraction=0.0,
            expected_events=0.0,
            expected_loss_s=0.0,
            expected_s=work_s,
            sd_s=0.0,
        )
    if workload.strategy is Strategy.ASP_PS:
        nodes = sum(group.node_count for group in groups if group.role is Role.WORKER)
        return _asynchronous(workload, rates, nodes=nodes, work_s=work_s)
    return _stopping(workload, rate=rate, work_s=work_s)


def _stopping(workload: Workload, *, rate: float, work_s: float) -> SpotRisk:
    """Charge a run that every event sends back to its last checkpoint."""
    save_s, restart_s = checkpoint_s(workload), workload.spot.restart_s
    interval_s = min(young_daly_interval_s(save_s, rate), work_s)
    expected_s = float(stopped_run_s(work_s, rate, save_s=save_s, restart_s=restart_s))
    events = rate * expected_s / 3600
    loss_s = interval_s / 2 + restart_s
    return SpotRisk(
        events_per_hour=rate,
        checkpoint_interval_s=interval_s,
        overhead_fraction=save_s / interval_s,
        expected_events=events,
        expected_loss_s=loss_s,
        expected_s=expected_s,
        sd_s=loss_s * math.sqrt(4 / 3 * events),  # Poisson count, loss uniform around its mean
    )


def _asynchronous(workload: Workload, rates: EventRates, *, nodes: int, work_s: float) -> SpotRisk:
    """Charge each event the share of the workers that is missing until it is refilled."""
    rate, worker_rate = float(rates.per_hour[0]), float(rates.worker_per_hour[0])
    lost_fraction = float(rates.lost_workers_per_hour[0]) / nodes
    restart_s = workload.spot.restart_s
    refilled_s = float(refilled_run_s(work_s, lost_fraction, restart_s=restart_s))
    loss_s = restart_s * lost_fraction / worker_rate if worker_rate else 0.0
    sd_s = loss_s * math.sqrt(worker_rate * refilled_s / 3600)
    stops = None
    if rates.server_per_hour > 0:
        stops = _stopping(workload, rate=rates.server_per_hour, work_s=refilled_s)
        sd_s = math.hypot(sd_s, stops.sd_s)
        loss_s = (worker_rate * loss_s + stops.events_per_hour * stops.expected_loss_s) / rate
    expected_s = stops.expected_s if stops else refilled_s
    return SpotRisk(
        events_per_hour=rate,
        checkpoint_interval_s=stops.checkpoint_interval_s if stops else None,
        overhead_fraction=stops.overhead_fraction if stops else 0.0,
        expected_events=rate * expected_s / 3600,
        expected_loss_s=loss_s,
        expected_s=expected_s,
        sd_s=sd_s,
    )


def _members(workers: Sequence[NodeGroup], pools: Sequence[Pool]) -> NDArray[Any]:
    """Return the group of each pool; where several share one, which groups are in each."""
    places = {pool: i for i, pool in enumerate(pools)}
    of_group = [places.get(g.offer.pool, -1) if g.offer else -1 for g in workers]
    rows = [i for i, place in enumerate(of_group) if place >= 0]
    if len(rows) == len(pools):
        return np.array(sorted(rows, key=lambda i: of_group[i]), dtype=np.intp)
    members = np.zeros((len(pools), len(workers)))
    members[[of_group[i] for i in rows], rows] = 1.0
    return members
