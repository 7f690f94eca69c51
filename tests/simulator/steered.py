"""One run of the small job under our policy, with some rules."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.fleet_speeds import FleetSpeeds
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.outcome import Outcome
from spotwright.simulator.policies.ours import Ours
from spotwright.simulator.policies.policy import Policy
from spotwright.simulator.policies.registry import spot_pools
from spotwright.simulator.run import Scene, simulate
from spotwright.usecases.fleet_choices import FleetChoices
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.steering_rules import SteeringRules
from tests.simulator.small_market import HOUR_S, WORK_HOURS


def scene_of(
    job: JobSpec,
    source: OfferSource,
    market: MarketTrace,
    *,
    conditions: Conditions | None = None,
    servers: Mapping[Pool, int] | None = None,
) -> Scene:
    conditions = conditions or Conditions(notice_s=0.0, checkpoint_every_s=10.0)
    choices = FleetChoices(job, source)
    return Scene(
        speeds=FleetSpeeds(choices, checkpoint_every_s=conditions.checkpoint_every_s),
        market=market.noticed(conditions.notice_s),
        prices_usd_per_hour={p: o.price_usd_per_hour for p, o in choices.offers.items()},
        servers=servers or {},
        conditions=conditions,
        horizon_s=(job.goal.deadline_s or 50 * HOUR_S) * 1.5,
        is_recorded=True,
    )


def ours(scene: Scene, source: OfferSource, **rules: Any) -> Policy:
    choices = scene.speeds.choices
    return Ours(
        choices=choices,
        planned_s=WORK_HOURS * HOUR_S,
        spot_pools=spot_pools(choices, source),
        rules=replace(SteeringRules(), **rules),
    )


def steered(scene: Scene, source: OfferSource, **rules: Any) -> Outcome:
    return simulate(scene, ours(scene, source, **rules))
