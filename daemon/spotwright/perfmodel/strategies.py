"""From a job and a fleet to the step model of its strategy."""

from collections.abc import Sequence

from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import JobSpec
from spotwright.domain.workload import Strategy
from spotwright.perfmodel.allreduce import AllreduceModel
from spotwright.perfmodel.asp_ps import AspPsModel
from spotwright.perfmodel.bsp_ps import BspPsModel
from spotwright.perfmodel.parameter_server import ServerDemand, server_demand
from spotwright.perfmodel.serverless import ServerlessModel
from spotwright.perfmodel.step_model import StepModel, WorkerClass

CROSS_ZONE_S, CROSS_REGION_S = 0.8e-3, 70e-3  # round trip beyond that inside a zone


def build_model(
    job: JobSpec,
    workers: Sequence[WorkerClass],
    servers: Sequence[NodeGroup],
    *,
    most_workers: int,
) -> StepModel:
    """Return the model that evaluates fleets of these workers, with these servers.

    Raises:
        MissingFactError: a rate that the strategy needs is not known.
    """
    workload = job.workload
    if workload.strategy is Strategy.ALLREDUCE:
        return AllreduceModel(workload, workers)
    demand = _demand(job, servers)
    latency_s = [_latency_s(worker.group, servers) for worker in workers]
    if workload.strategy is Strategy.BSP_PS:
        return BspPsModel(workload, workers, demand, latency_s=latency_s)
    return AspPsModel(workload, workers, demand, latency_s=latency_s, most_workers=most_workers)


def build_serverless(
    job: JobSpec, memory_mb: Sequence[float], servers: Sequence[NodeGroup]
) -> ServerlessModel:
    """Return the model for functions of these sizes."""
    return ServerlessModel(job.workload, memory_mb, _demand(job, servers))


def _demand(job: JobSpec, servers: Sequence[NodeGroup]) -> ServerDemand:
    if not servers:
        raise BadInputError(f"strategy {job.workload.strategy} needs a parameter server: ps=TYPE")
    return server_demand(job.workload, servers, job.limits.network)


def _latency_s(worker: NodeGroup, servers: Sequence[NodeGroup]) -> float:
    """Return the extra round trip to the farthest server."""
    return max(_distance_s(worker, server) for server in servers)


def _distance_s(a: NodeGroup, b: NodeGroup) -> float:
    if a.offer is None or b.offer is None or a.offer.zone == b.offer.zone:
        return 0.0
    return CROSS_ZONE_S if a.offer.region == b.offer.region else CROSS_REGION_S
