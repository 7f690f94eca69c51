"""What other planners would rent for a job: those that answer within seconds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import RunningFleet
from spotwright.domain.workload import Strategy
from spotwright.planner.baselines.cynthia import cynthia
from spotwright.planner.baselines.homogeneous import homogeneous_fastest, homogeneous_slowest
from spotwright.planner.baselines.lambdadnn import lambdadnn
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.baselines.spotdnn import spotdnn
from spotwright.planner.problem import Problem, Watch
from spotwright.planner.solve import solve
from spotwright.usecases.list_offers import server_offers, worker_offers
from spotwright.usecases.ports import OfferSource

_Search = Callable[[Problem], BaselineResult]
_SEARCHES: dict[Strategy, tuple[_Search, ...]] = {
    Strategy.ASP_PS: (homogeneous_slowest, homogeneous_fastest, spotdnn, cynthia),
    Strategy.BSP_PS: (homogeneous_slowest, homogeneous_fastest, cynthia),
    Strategy.ALLREDUCE: (homogeneous_slowest, homogeneous_fastest),
    Strategy.SERVERLESS: (lambdadnn,),
}


def compare_rivals(
    job: JobSpec,
    source: OfferSource,
    *,
    running: RunningFleet,
    watch: Watch,
    now: datetime | None = None,
) -> Sequence[BaselineResult]:
    """Return what each planner for this strategy settles on; once time is up, no more are asked.

    A planner that finds nothing that meets the goal is listed, without a fleet.
    """
    rents_nodes = job.workload.strategy is not Strategy.SERVERLESS
    problem = Problem(
        job=job,
        worker_offers=worker_offers(job, source, now=now) if rents_nodes else (),
        server_offers=server_offers(job, source, now=now),
        gpu_facts=source.gpu,
        running=running,
    )
    found: list[BaselineResult] = []
    for search in _SEARCHES[job.workload.strategy]:
        if watch.stopped():
            return found
        found.append(search(problem))
    return [*found, _on_demand_only(problem, watch)] if rents_nodes else found


def _on_demand_only(problem: Problem, watch: Watch) -> BaselineResult:
    """Return the best fleet without the spot market; the best so far, once time is up."""
    stays = replace(
        problem,
        worker_offers=[offer for offer in problem.worker_offers if _stays(offer)],
        server_offers=[offer for offer in problem.server_offers if _stays(offer)],
    )
    best = solve(stays, watch=watch)
    return BaselineResult(
        name="on-demand only",
        fleet=best.fleet,
        cost_usd=best.cost_usd,
        duration_s=best.duration_s,
        fleet_count=best.box_count,
    )


def _stays(offer: Offer) -> bool:
    return offer.market is Market.ON_DEMAND
