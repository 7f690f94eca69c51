"""Runs of one fleet under the spot model, drawn at random: how their durations spread.

The assumptions are those of interruption.py, and so is the mean. A run that every event stops goes
through equally long intervals, about as long as Young and Daly's; an event takes what the interval
has done so far and restart_s, then it starts again. Intervals are independent and events have no
memory, so that it is enough to draw how often intervals are interrupted (negative binomial), and
when.

A lost worker of an asynchronous run is missing for restart_s. Losses come with the time that nodes
work, for one that is missing cannot be lost: single ones as a Poisson process, shocks as one for
each pool. That a shock may take workers and servers of one pool together is not drawn.
"""

from collections import Counter

import numpy as np

from spotwright.domain.fleet import Fleet
from spotwright.domain.offer import Pool
from spotwright.domain.workload import Strategy, Workload
from spotwright.perfmodel.interruption import (
    checkpoint_s,
    event_rates,
    pool_hazards,
    stopped_run_s,
    young_daly_interval_s,
)
from spotwright.perfmodel.step_model import Floats

_LONGEST_RUN = 50.0  # times its work; runs beyond never end
_HOPELESS_EVENTS = 20.0  # per interval: of 1000 attempts, two in a million runs see one succeed
_DRAWN_EVENTS = 32  # of a run that has more, the sum of what they lose is normal
_MOST_INTERVALS = 1e9  # of a run that has more, chance evens out: it takes what is expected


def simulate_run_s(
    workload: Workload, fleet: Fleet, *, work_s: float, runs: int = 4000, seed: int = 0
) -> Floats:
    """Return how long each of some runs takes that needs `work_s` without interruptions.

    A run of more than 50 times its work is given as infinite.
    """
    rates = event_rates(workload, fleet.nodes)
    stops_per_hour, run_s = float(rates.per_hour[0]), np.full(runs, work_s)
    if stops_per_hour == 0:
        return run_s
    random = np.random.default_rng(seed)
    if workload.strategy is Strategy.ASP_PS:
        stops_per_hour = rates.server_per_hour
        run_s = run_s + _missing_s(random, workload, fleet, run_s)
    else:
        run_s = run_s[:1]  # every run has the same work: what follows from it is computed once
    if stops_per_hour > 0:
        run_s = _stopped_s(random, workload, run_s, stops_per_hour, runs=runs)
    return np.where(run_s <= _LONGEST_RUN * work_s, run_s, np.inf)


def _missing_s(
    random: np.random.Generator, workload: Workload, fleet: Fleet, work_s: Floats
) -> Floats:
    """Return by how much workers that are missing make runs longer, nodes weighing equally."""
    shock, hours = workload.spot.common_shock_fraction, work_s / 3600
    nodes: Counter[Pool | None] = Counter()
    for group in fleet.workers:
        nodes[group.offer.pool if group.offer else None] += group.node_count
    missing = np.zeros_like(work_s)
    for pool, hazard in pool_hazards(workload, fleet.workers).items():
        missing += random.poisson((1 - shock) * hazard * nodes[pool] * hours)
        missing += random.poisson(shock * hazard * hours) * nodes[pool]
    return missing * workload.spot.restart_s / nodes.total()


def _stopped_s(
    random: np.random.Generator,
    workload: Workload,
    work_s: Floats,
    stops_per_hour: float,
    *,
    runs: int,
) -> Floats:
    """Return the durations of runs that every event sends back to the last checkpoint.

    `work_s` has one value for all runs, or one for each.
    """
    save_s, restart_s = checkpoint_s(workload), workload.spot.restart_s
    per_s = stops_per_hour / 3600
    expected_s = stopped_run_s(work_s, stops_per_hour, save_s=save_s, restart_s=restart_s)
    intervals = np.maximum(np.rint(work_s / young_daly_interval_s(save_s, stops_per_hour)), 1.0)
    if intervals.max() > _MOST_INTERVALS:
        return np.broadcast_to(expected_s, runs)
    events = np.log1p(expected_s / intervals / (1 / per_s + restart_s))  # that give this mean
    hopeless = events > _HOPELESS_EVENTS
    events = np.minimum(events, _HOPELESS_EVENTS)
    stops = random.negative_binomial(intervals, np.exp(-events), size=runs).astype(np.float64)
    lost_s = _waits(random, stops, events) / per_s
    run_s = intervals * events / per_s + stops * restart_s + lost_s
    return np.where(hopeless, np.inf, run_s)


def _waits(random: np.random.Generator, counts: Floats, longest: Floats) -> Floats:
    """Return sums of `counts` waits for an event of rate 1, none longer than `longest`."""
    columns = min(int(counts.max()), _DRAWN_EVENTS)
    happens = -np.expm1(-longest)
    drawn = random.random((len(counts), columns))
    some = np.flatnonzero(counts)  # of most runs nothing is lost
    lost = -np.log1p(-drawn[some] * np.broadcast_to(happens, counts.shape)[some, None])
    few = np.zeros_like(counts)
    few[some] = np.where(np.arange(columns) < counts[some, None], lost, 0.0).sum(axis=1)
    if counts.max() <= columns:
        return few
    odds = np.exp(-longest) / happens
    mean = 1 - longest * odds
    variance = np.where(longest > 1e-2, 1 - longest**2 * odds / happens, longest**2 / 12)
    many = counts * mean + np.sqrt(counts * variance) * random.standard_normal(len(counts))
    return np.where(counts > columns, np.maximum(many, 0.0), few)
