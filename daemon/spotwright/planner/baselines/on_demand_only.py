"""The exact search without the spot market: what it is worth."""

from dataclasses import replace

from spotwright.domain.offer import Market, Offer
from spotwright.planner.baselines.result import BaselineResult
from spotwright.planner.problem import Problem
from spotwright.planner.solve import solve


def on_demand_only(problem: Problem) -> BaselineResult:
    """Solve the problem with what cannot be taken away."""
    limits = replace(problem.job.limits, markets=frozenset({Market.ON_DEMAND}))
    found = solve(
        replace(
            problem,
            job=replace(problem.job, limits=limits),
            worker_offers=[offer for offer in problem.worker_offers if _stays(offer)],
            server_offers=[offer for offer in problem.server_offers if _stays(offer)],
        )
    )
    return BaselineResult(
        name="on-demand only",
        fleet=found.fleet,
        cost_usd=found.cost_usd,
        duration_s=found.duration_s,
        fleet_count=found.box_count,
    )


def _stays(offer: Offer) -> bool:
    return offer.market is Market.ON_DEMAND
