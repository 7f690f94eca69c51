"""The policies by name."""

from enum import StrEnum

from spotwright.domain.offer import Market, Pool
from spotwright.simulator.policies.one_fleet import Greedy, OnDemand, TwoFleets, UniformProgress
from spotwright.simulator.policies.ours import Ours
from spotwright.simulator.policies.policy import Policy
from spotwright.simulator.policies.replanning import Replanning, Search
from spotwright.usecases.fleet_choices import FleetChoices
from spotwright.usecases.list_offers import worker_offers
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.steering_rules import SteeringRules


class PolicyName(StrEnum):
    """Who steers a simulated job."""

    OURS = "ours"
    ON_DEMAND = "on-demand"
    GREEDY = "greedy"
    UNIFORM_PROGRESS = "uniform-progress"
    SPOTDNN = "spotdnn"
    HOMOGENEOUS = "homogeneous"


def policy_of(
    name: PolicyName,
    *,
    choices: FleetChoices,
    source: OfferSource,
    fleets: TwoFleets,
    planned_s: float,
    starts_planned: bool,
    rules: SteeringRules,
) -> Policy:
    """Return a policy for one run of a job."""
    if name is PolicyName.ON_DEMAND:
        return OnDemand(fleets)
    if name is PolicyName.GREEDY:
        return Greedy(fleets)
    if name is PolicyName.UNIFORM_PROGRESS:
        return UniformProgress(fleets)
    if name in (PolicyName.SPOTDNN, PolicyName.HOMOGENEOUS):
        search = Search.WINDOW if name is PolicyName.SPOTDNN else Search.ONE_TYPE
        return Replanning(job=choices.job, source=source, fleets=fleets, search=search)
    return Ours(
        choices=choices,
        planned_s=planned_s,
        spot_pools=spot_pools(choices, source),
        start=fleets.spot if starts_planned else {},
        rules=rules,
    )


def spot_pools(choices: FleetChoices, source: OfferSource) -> frozenset[Pool]:
    """Return the spot pools that a job could use."""
    offers = worker_offers(choices.job, source)
    return frozenset(offer.pool for offer in offers if offer.market is Market.SPOT)
