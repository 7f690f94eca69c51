"""lambdaDNN's search (IEEE TC 2022): functions in steps of 64 MB, as many as the server can feed.

    n_upper = B_PS / B_fmax, rounded down: the server's network by the most that one function draws

The cheapest of all sizes and numbers that meets the deadline wins; servers are the job's own.
"""

import numpy as np

from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Objective
from spotwright.perfmodel.parameter_server import server_demand
from spotwright.perfmodel.serverless import serverless_law
from spotwright.planner.baselines.places import own_servers
from spotwright.planner.baselines.result import BaselineResult, BestFleet
from spotwright.planner.problem import Problem, Watch
from spotwright.planner.serverless import (
    LEAST_MEMORY_MB,
    MOST_MEMORY_MB,
    FunctionContext,
    FunctionGrid,
    search_functions,
)

_NAME = "lambdaDNN"
_STEP_MB = 64


def lambdadnn(problem: Problem) -> BaselineResult:
    """Scan functions in front of the job's own servers."""
    if not problem.server_offers:
        return BestFleet().result(_NAME)
    job, law = problem.job, serverless_law(problem.job.workload)
    server = own_servers(job, problem.server_offers)
    sizes_mb = np.arange(LEAST_MEMORY_MB, MOST_MEMORY_MB + 1.0, _STEP_MB)
    functions = np.arange(1.0, _upper(job, server) + 1)
    context = FunctionContext(job, server, objective=Objective.COST)
    found = search_functions([context], FunctionGrid(law, sizes_mb, functions), watch=Watch())
    return BaselineResult(
        name=_NAME,
        fleet=found.fleet,
        cost_usd=found.cost_usd,
        duration_s=found.duration_s,
        fleet_count=len(sizes_mb) * len(functions),
    )


def _upper(job: JobSpec, server: NodeGroup) -> int:
    drawn_mbps = serverless_law(job.workload).function_max_mbps
    if drawn_mbps is None:
        return job.limits.max_nodes
    supply_mbps = server_demand(job.workload, [server], job.limits.network).bandwidth_mbps
    return int(min(supply_mbps // drawn_mbps, job.limits.max_nodes))
