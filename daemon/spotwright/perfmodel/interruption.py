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
replacement has joined, and only the loss of a server stops the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.offer import Market, Pool
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.laws.checkpoint_law import DEFAULT_CHECKPOINT_LAW
from spotwright.perfmodel.survival import kaplan_meier

_HOURS_PER_MONTH = 730.0
UNKNOWN_INTERRUPTION_FRACTION = 0.10  # per month, where the advisor lists none
_STATE_COPIES = 3.0  # a checkpoint holds parameters and two moments


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
    """Return the interruptions per hour of one node: from measured lifetimes, else the advisor."""
    if group.market is Market.ON_DEMAND or group.offer is None:
        return 0.0
    measured = workload.spot.lifetimes.get(group.instance_type.name)
    if measured is not None:
        return kaplan_meier(measured.hours, measured.revoked).mean_hazard_per_hour(
            max(measured.hours)
        )
    share = group.offer.interruption_fraction
    share = UNKNOWN_INTERRUPTION_FRACTION if share is None else share
    return -math.log(1 - share) / _HOURS_PER_MONTH


def uninterrupted_probability(
    workload: Workload, groups: Sequence[NodeGroup], *, hours: float
) -> float:
    """Return the probability that no node is taken within `hours`."""
    return math.exp(-_event_rate(workload, groups) * hours)


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


def spot_risk(workload: Workload, groups: Sequence[NodeGroup], *, work_s: float) -> SpotRisk:
    """Return what interruptions do to a run."""
    rate = _event_rate(workload, groups)
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
        return _asynchronous(workload, groups, rate=rate, work_s=work_s)
    return _stopping(workload, rate=rate, work_s=work_s)


def _stopping(workload: Workload, *, rate: float, work_s: float) -> SpotRisk:
    """Charge a run that every event sends back to its last checkpoint."""
    save_s, per_s = checkpoint_s(workload), rate / 3600
    interval_s = min(young_daly_interval_s(save_s, rate), work_s)
    repeats = math.expm1(per_s * (interval_s + save_s))
    expected_s = work_s / interval_s * (1 / per_s + workload.spot.restart_s) * repeats
    events = per_s * expected_s
    loss_s = interval_s / 2 + workload.spot.restart_s
    return SpotRisk(
        events_per_hour=rate,
        checkpoint_interval_s=interval_s,
        overhead_fraction=save_s / interval_s,
        expected_events=events,
        expected_loss_s=loss_s,
        expected_s=expected_s,
        sd_s=loss_s * math.sqrt(4 / 3 * events),  # Poisson count, loss uniform around its mean
    )


def _asynchronous(
    workload: Workload, groups: Sequence[NodeGroup], *, rate: float, work_s: float
) -> SpotRisk:
    """Charge each event the share of the workers that is missing until it is refilled."""
    workers = [group for group in groups if group.role is Role.WORKER]
    nodes = sum(group.node_count for group in workers)
    lost_per_hour = sum(hazard_per_hour(workload, g) * g.node_count for g in workers)
    refilled_s = work_s * (1 + lost_per_hour / nodes * workload.spot.restart_s / 3600)
    worker_rate = _event_rate(workload, workers)
    loss_s = workload.spot.restart_s * lost_per_hour / nodes / worker_rate if worker_rate else 0.0
    sd_s = loss_s * math.sqrt(worker_rate * refilled_s / 3600)
    stops = None
    if rate > worker_rate:
        stops = _stopping(workload, rate=rate - worker_rate, work_s=refilled_s)
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


def _event_rate(workload: Workload, groups: Sequence[NodeGroup]) -> float:
    """Return the events per hour; groups of one pool share its shocks."""
    shock = workload.spot.common_shock_fraction
    hazards = {g.offer.pool: hazard_per_hour(workload, g) for g in groups if g.offer}
    nodes: dict[Pool, int] = {}
    for group in groups:
        if group.offer:
            nodes[group.offer.pool] = nodes.get(group.offer.pool, 0) + group.node_count
    return sum(hazards[pool] * (shock + (1 - shock) * n) for pool, n in nodes.items())
