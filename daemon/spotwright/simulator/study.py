"""Many runs of one job under several policies, on the same windows of the same market.

Runs are done in blocks. Each block begins with nothing remembered and depends on nothing but its
own runs, so that results are the same wherever and in whatever order blocks are run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from spotwright.domain.job import JobSpec
from spotwright.domain.offer import Pool
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.draw import Draw
from spotwright.simulator.fleet_speeds import FleetSpeeds
from spotwright.simulator.outcome import Outcome
from spotwright.simulator.policies.one_fleet import TwoFleets
from spotwright.simulator.policies.policy import Policy
from spotwright.simulator.policies.registry import PolicyName, policy_of
from spotwright.simulator.run import Scene, simulate
from spotwright.usecases.fleet_choices import MOST_BOXES, FleetChoices
from spotwright.usecases.ports import OfferSource
from spotwright.usecases.steering_rules import SteeringRules

_BLOCK_RUNS = 25
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is run; it can be sent to another process."""

    job: JobSpec
    source: OfferSource
    draw: Draw
    fleets: TwoFleets
    servers: Mapping[Pool, int] = field(default_factory=dict)
    planned_s: float
    starts_planned: bool = False  # begin with the planned workers; else decide at the start, too
    conditions: Conditions = field(default_factory=Conditions)
    rules: SteeringRules = field(default_factory=SteeringRules)
    most_boxes: int = MOST_BOXES  # of each search for a fleet
    seed: int = 0

    @property
    def horizon_s(self) -> float:
        """When a run is ended at the latest."""
        return self.fleets.deadline_s * self.conditions.horizon_factor


@dataclass(frozen=True, slots=True)
class Block:
    """Some runs of a study under one policy."""

    study: Study
    policy: PolicyName
    first_run: int
    run_count: int


class Spread(Protocol):
    """Runs tasks somewhere: here, in processes, on a cluster."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """Return what the function gives for each task, in their order."""


class InThisProcess:
    """Runs one task after another."""

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Return what the function gives for each task."""
        return map(function, tasks)


def run_study(
    study: Study,
    policies: Sequence[PolicyName],
    *,
    runs: int,
    spread: Spread,
    told: Callable[[int], None] = lambda _: None,
    block_runs: int = _BLOCK_RUNS,
) -> dict[PolicyName, list[Outcome]]:
    """Run every policy on the same windows.

    Args:
        study: what is run.
        policies: to hold against each other.
        runs: of each policy.
        spread: who runs them.
        told: is told how many runs are done.
        block_runs: how many runs share what was remembered.
    """
    blocks = [
        Block(study, policy, first, min(block_runs, runs - first))
        for policy in policies
        for first in range(0, runs, block_runs)
    ]
    found: dict[PolicyName, list[Outcome]] = {policy: [] for policy in policies}
    done = 0
    for block, outcomes in zip(blocks, spread.map(run_block, blocks), strict=True):
        found[block.policy] += outcomes
        done += block.run_count
        told(done)
    return found


def run_block(block: Block) -> list[Outcome]:
    """Do the runs of a block."""
    stage = Stage(block.study)
    runs = range(block.first_run, block.first_run + block.run_count)
    return [stage.run(block.policy, run) for run in runs]


class Stage:
    """A study's job, ready to be run again and again."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self.choices = FleetChoices(study.job, study.source, most_boxes=study.most_boxes)
        self._speeds = FleetSpeeds(
            self.choices, checkpoint_every_s=study.conditions.checkpoint_every_s
        )

    def run(self, name: PolicyName, run: int, *, is_recorded: bool = False) -> Outcome:
        """Do one run."""
        scene = self.scene(run, is_recorded=is_recorded)
        return simulate(scene, self.policy(name), seed=self._study.seed * 1_000_003 + run)

    def scene(self, run: int, *, is_recorded: bool = False) -> Scene:
        """Return the market of one run."""
        study = self._study
        market = study.draw.market(run, study.horizon_s, notice_s=study.conditions.notice_s)
        return Scene(
            speeds=self._speeds,
            market=market,
            prices_usd_per_hour={p: o.price_usd_per_hour for p, o in self.choices.offers.items()},
            servers=study.servers,
            conditions=study.conditions,
            horizon_s=study.horizon_s,
            is_recorded=is_recorded,
        )

    def policy(self, name: PolicyName) -> Policy:
        """Return a policy that remembers nothing yet."""
        study = self._study
        return policy_of(
            name,
            choices=self.choices,
            source=study.source,
            fleets=study.fleets,
            planned_s=study.planned_s,
            starts_planned=study.starts_planned,
            rules=study.rules,
        )
