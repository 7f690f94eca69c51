"""Rivals that search for a fleet at the start, and again whenever nodes are lost.

    spotDNN      Algorithm 1, the window over instances sorted by speed (IWQoS 2023)
    homogeneous  the type with the lowest price, just enough nodes

Both are asked with what is left of time and work and with the pools that give nodes now. Where
nothing that they look at is in time, they go on with what they have, else with the sure fleet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView, NodeState
from spotwright.planner.baselines.homogeneous import homogeneous_slowest
from spotwright.planner.baselines.spotdnn import spotdnn
from spotwright.planner.problem import Problem
from spotwright.simulator.policies.one_fleet import TwoFleets
from spotwright.simulator.policies.policy import Wish
from spotwright.usecases.list_offers import server_offers, worker_offers
from spotwright.usecases.ports import OfferSource

_RETRY_S = 600.0  # after a search that found nothing


class Search(StrEnum):
    """How a fleet is looked for."""

    WINDOW = "window"
    ONE_TYPE = "one-type"


@dataclass(slots=True, kw_only=True)
class Replanning:
    """Searches after every loss."""

    job: JobSpec
    source: OfferSource
    fleets: TwoFleets
    search: Search
    _wanted: Mapping[Pool, int] = field(default_factory=dict)
    _seen: frozenset[str] | None = None

    @property
    def watches(self) -> frozenset[Pool]:
        """All that it could rent: its search has to know what there is."""
        return frozenset(offer.pool for offer in worker_offers(self.job, self.source))

    def decide(self, view: JobView) -> Wish:
        """Search again if a node is gone or will be, or if pools gave less than was asked."""
        staying = frozenset(n.node_id for n in view.nodes if n.state is not NodeState.LEAVING)
        is_short = any(pool in view.unavailable for pool in self._wanted)
        if self._seen is not None and not (self._seen - staying) and not is_short:
            self._seen = self._seen | staying
            return Wish(self._wanted, view.time_s + _RETRY_S if not self._wanted else float("inf"))
        found = self._searched(view)
        self._seen = staying & frozenset(
            node.node_id for node in view.nodes if node.pool in (found or {})
        )
        self._wanted = found if found is not None else self.fleets.sure
        return Wish(self._wanted)

    def _searched(self, view: JobView) -> dict[Pool, int] | None:
        left = max(1 - view.done_fraction, 1e-9)
        left_s = self.fleets.deadline_s - view.time_s - self.fleets.restart_s
        if left_s <= 0:
            return None
        goal = replace(self.job.goal, deadline_s=left_s / left, budget_usd=None)
        job = replace(self.job, goal=goal)
        problem = Problem(
            job=job,
            worker_offers=[
                offer
                for offer in worker_offers(job, self.source)
                if offer.pool not in view.unavailable
            ],
            server_offers=server_offers(job, self.source),
            gpu_facts=self.source.gpu,
        )
        find = spotdnn if self.search is Search.WINDOW else homogeneous_slowest
        fleet = find(problem).fleet
        if fleet is None:
            return None
        return {group.offer.pool: group.node_count for group in fleet.workers if group.offer}
