"""Cynthia's search (ICPP 2019): one instance type, as many workers as the servers can take.

    n_upper = T / D, rounded down: T a lone worker's step, D the time for which one step keeps the
              busiest server busy, its processor or its network
    n_lower = T_1 / deadline, rounded up: T_1 the run of a lone worker; its square where sqrt(n)
              slows the loss of asynchronous training

For each type and each number of servers, n from n_lower to n_upper; the cheapest wins.
"""

import math

import numpy as np

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import JobSpec, Placement, TargetKind
from spotwright.domain.workload import NoiseScaleLaw, Strategy
from spotwright.perfmodel.fleets import FleetFigures
from spotwright.perfmodel.parameter_server import server_demand
from spotwright.planner.baselines.instance_types import TypedFleets, rented_types
from spotwright.planner.baselines.places import places
from spotwright.planner.baselines.result import BaselineResult, BestFleet
from spotwright.planner.problem import Problem


def cynthia(problem: Problem) -> BaselineResult:
    """Scan every type with every number of servers, in every zone."""
    best, job = BestFleet(), problem.job
    for place in places(problem, Placement.ONE_ZONE):
        for kind in rented_types(problem, place):
            fleets = TypedFleets(problem, place, [kind])
            alone = fleets.alone()
            most = min(fleets.most[0], _upper(job, place.servers, alone))
            nodes = np.arange(_lower(job, alone), most + 1.0)
            best.offer(fleets.context, fleets.counts(nodes[None, :]))
    return best.result("Cynthia")


def _lower(job: JobSpec, alone: FleetFigures) -> int:
    if not job.goal.deadline_s:
        return 1
    crowding = (
        job.workload.strategy is Strategy.ASP_PS
        and job.goal.target.kind is TargetKind.LOSS
        and not isinstance(job.workload.convergence, NoiseScaleLaw)
    )
    fold = float(alone.work_s[0]) / job.goal.deadline_s
    return max(1, math.ceil(min(fold ** (2 if crowding else 1), job.limits.max_nodes + 1)))


def _upper(job: JobSpec, servers: tuple[NodeGroup, ...], alone: FleetFigures) -> int:
    """Return the most workers that do not saturate the servers."""
    if not servers:
        return job.limits.max_nodes
    demand = server_demand(job.workload, servers, job.limits.network)
    busy_s = max(demand.cpu_demand_s, demand.link_demand_s)
    return max(1, int(min(alone.iteration_s[0] / busy_s, job.limits.max_nodes)))
