"""Which markets a simulation runs through, by its `--traces` flag."""

from dataclasses import dataclass
from pathlib import Path

from spotwright.adapters.traces.bundled import bundled_campaigns
from spotwright.adapters.traces.csv_campaigns import read_csv_campaigns
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Offer
from spotwright.perfmodel.interruption import hazard_per_hour
from spotwright.simulator.campaign import Campaign
from spotwright.simulator.draw import Draw, DrawnCampaigns, DrawnHazards
from spotwright.usecases.list_offers import worker_offers
from spotwright.usecases.ports import OfferSource


@dataclass(frozen=True, slots=True)
class DrawnMarkets:
    """Markets, and where they come from."""

    draw: Draw
    text: str


def drawn_markets(traces: str, job: JobSpec, source: OfferSource, *, seed: int) -> DrawnMarkets:
    """Return the markets that are asked for.

    Raises:
        BadInputError: no such traces, or the job rents no spot nodes.
    """
    spot = [offer for offer in worker_offers(job, source) if offer.market is Market.SPOT]
    if traces == "hazard":
        return _hazards(spot, job, seed=seed)
    campaigns = _campaigns(traces)
    text = (
        f"{len(campaigns)} measured availability series ({_sources(campaigns)}); each run draws "
        f"one for every spot pool of the job ({len(spot)}), by seed {seed}"
    )
    draw = DrawnCampaigns(
        campaigns=tuple(campaigns),
        pools=tuple(offer.pool for offer in spot),
        most_nodes=job.limits.max_nodes,
        seed=seed,
    )
    return DrawnMarkets(draw, text)


def _campaigns(traces: str) -> list[Campaign]:
    file = Path(traces)
    if file.suffix in (".csv", ".gz"):
        return read_csv_campaigns(file)
    bundled = bundled_campaigns()
    if traces == "bundled":
        return bundled
    found = [campaign for campaign in bundled if traces in campaign.name]
    if not found:
        names = "\n  ".join(campaign.name for campaign in bundled)
        raise BadInputError(
            f"--traces: {traces} is neither a CSV file, nor hazard, nor part of the name of a "
            f"bundled series:\n  {names}"
        )
    return found


def _hazards(spot: list[Offer], job: JobSpec, *, seed: int) -> DrawnMarkets:
    shock = job.workload.spot.common_shock_fraction
    hazards = {offer.pool: hazard_per_hour(job.workload, _node(offer)) for offer in spot}
    text = (
        f"losses drawn from the hazards that the plan is made with, {shock:.0%} of them taking a "
        f"whole pool for an hour on average; {len(spot)} spot pools, seed {seed}"
    )
    draw = DrawnHazards(
        hazards_per_hour=hazards,
        common_fraction=shock,
        most_nodes=job.limits.max_nodes,
        seed=seed,
    )
    return DrawnMarkets(draw, text)


def _node(offer: Offer) -> NodeGroup:
    kind = offer.instance_type
    return NodeGroup(
        role=Role.WORKER,
        instance_type=kind,
        node_count=1,
        gpus_per_node=kind.gpu_count,
        offer=offer,
    )


def _sources(campaigns: list[Campaign]) -> str:
    return ", ".join(sorted({campaign.source for campaign in campaigns}))
