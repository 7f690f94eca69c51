"""Which markets a simulation runs through, by its `--traces` and `--prices` flags."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spotwright.adapters.traces.bundled import bundled_campaigns
from spotwright.adapters.traces.csv_campaigns import read_csv_campaigns
from spotwright.adapters.traces.price_history import observed_until, read_price_history
from spotwright.cli.simulate_flags import SimulateFlags
from spotwright.domain.errors import BadInputError
from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Market, Offer
from spotwright.perfmodel.interruption import hazard_per_hour
from spotwright.simulator.campaign import Campaign, CampaignKind
from spotwright.simulator.draw import AtPrices, Draw, DrawnCampaigns, DrawnHazards
from spotwright.usecases.list_offers import worker_offers
from spotwright.usecases.ports import OfferSource


@dataclass(frozen=True, slots=True)
class DrawnMarkets:
    """Markets, and where they come from."""

    draw: Draw
    text: str


def drawn_markets(flags: SimulateFlags, job: JobSpec, source: OfferSource) -> DrawnMarkets:
    """Return the markets that are asked for.

    Raises:
        BadInputError: no such traces or prices, or dates that are none.
    """
    offers = worker_offers(job, source)
    spot = [offer for offer in offers if offer.market is Market.SPOT]
    if flags.traces == "hazard":
        markets = _hazards(spot, job, seed=flags.seed)
    else:
        markets = _measured(flags.traces, spot, job, seed=flags.seed)
    if flags.prices is None:
        return markets
    return _priced(markets, flags, flags.prices, offers)


def _measured(traces: str, spot: list[Offer], job: JobSpec, *, seed: int) -> DrawnMarkets:
    found = _campaigns(traces)
    campaigns = [each for each in found if each.kind is CampaignKind.AVAILABILITY]
    if not campaigns:
        kinds = ", ".join(sorted({each.kind for each in found}))
        raise BadInputError(
            f"--traces: {traces} has series of kind {kinds} only: they show nodes that were held, "
            "with their owner's own restarts and refusals; give series of kind availability"
        )
    other = len(found) - len(campaigns)
    text = (
        f"{len(campaigns)} measured availability series ({_sources(campaigns)}); each run draws "
        f"one for every spot pool of the job ({len(spot)}), by seed {seed}"
        + (f"; {other} series of nodes that were held are left out" if other else "")
    )
    draw = DrawnCampaigns(
        campaigns=tuple(campaigns),
        pools=tuple(offer.pool for offer in spot),
        most_nodes=job.limits.max_nodes,
        seed=seed,
    )
    return DrawnMarkets(draw, text)


def _priced(
    markets: DrawnMarkets, flags: SimulateFlags, path: Path, offers: Sequence[Offer]
) -> DrawnMarkets:
    until = _date("--until", flags.until) if flags.until else observed_until(path)
    since = _date("--since", flags.since) if flags.since else until - timedelta(days=365)
    if since >= until:
        raise BadInputError(f"--since {since:%Y-%m-%d} must be before --until {until:%Y-%m-%d}")
    history = read_price_history(
        path,
        instance_types={offer.instance_type.name for offer in offers},
        zones={offer.zone for offer in offers},
        begin=since,
        end=until,
    )
    pools = {offer.pool for offer in offers}
    prices = {pool: series for pool, series in history.prices.items() if pool in pools}
    if not prices:
        raise BadInputError(
            f"--prices: {path} has no pool of this job priced all the time from "
            f"{since:%Y-%m-%d} to {until:%Y-%m-%d}"
        )
    text = (
        f"{markets.text}; prices of {since:%Y-%m-%d} to {until:%Y-%m-%d} for {len(prices)} of "
        f"{len(pools)} pools, the catalog's for the others"
    )
    return DrawnMarkets(AtPrices(draw=markets.draw, prices=prices, seed=flags.seed), text)


def _date(flag: str, text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise BadInputError(f"{flag}: {text!r} is not a date such as 2025-01-31") from None


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
