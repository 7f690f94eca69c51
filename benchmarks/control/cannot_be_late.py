"""One V100 for 48 h through the campaign of 15 February 2023, beside the policies of the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from benchmarks.control.one_node import (
    CONDITIONS,
    KIND,
    ON_DEMAND_USD,
    RESTART_HOURS,
    SPOT_USD,
    WORK_HOURS,
    capacities,
    job_within,
    market_of,
    spot_pool,
    zone_campaigns,
)
from benchmarks.control.options import SEED, Options, require_data
from benchmarks.table import Row, print_rows, print_table
from spotwright.adapters.sweeps.process_pool import ProcessPool
from spotwright.domain.offer import Market, Pool
from spotwright.simulator.campaign import Campaign
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.draw import TracedWindows
from spotwright.simulator.foresight import OneNodeJob, foresight_usd
from spotwright.simulator.market import MarketTrace
from spotwright.simulator.outcome import Outcome
from spotwright.simulator.policies.one_fleet import TwoFleets
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.study import Study, run_study

DEADLINES_HOURS = (52.0, 70.0)
CHECKPOINT_GB, USD_PER_GB = 20.0, 0.02
_BLOCK_RUNS = 150  # that share what was remembered
_RIVALS = (PolicyName.ON_DEMAND, PolicyName.GREEDY, PolicyName.UNIFORM_PROGRESS)


class Cell(NamedTuple):
    """The runs of one deadline in one zone, or in all of them."""

    deadline_hours: float
    place: str
    outcomes: dict[PolicyName, list[Outcome]]
    foresight_usd: float

    def mean_usd(self, policy: PolicyName) -> float:
        """Return the mean cost of a policy."""
        return fmean(outcome.cost_usd for outcome in self.outcomes[policy])

    def misses(self, policy: PolicyName) -> int:
        """Return how many runs of a policy were late."""
        return sum(outcome.is_late for outcome in self.outcomes[policy])


class _Bound(NamedTuple):
    """One window for perfect foresight, in another process."""

    study: Study
    run: int


def print_one_pool(options: Options) -> None:
    """Hold the policies against each other in each zone by itself."""
    campaigns = zone_campaigns(require_data(options.data / "spot_traces.csv.gz"))
    cells = [
        _cell([campaign], hours, options, CONDITIONS, (PolicyName.OURS, *_RIVALS))
        for hours in DEADLINES_HOURS
        for campaign in campaigns
    ]
    _print_cells("One pool: 48 h job, 0.2 h restart, mean $ of the same windows", cells)
    _print_blind(campaigns, cells, options)
    ratios = [_ratio(cell) for cell in cells]
    late = sum(cell.misses(PolicyName.OURS) for cell in cells)
    runs = sum(len(cell.outcomes[PolicyName.OURS]) for cell in cells)
    print_rows(
        "One pool: targets",
        [
            Row(what="deadlines missed", figure=f"{late} of {runs}", target="0", is_met=late == 0),
            Row(
                what="cost over uniform progress, worst cell",
                figure=f"{max(ratios):.3f}",
                target="<= 1",
                is_met=max(ratios) <= 1,
            ),
            Row(
                what="cost over uniform progress, mean of the cells",
                figure=f"{fmean(ratios):.3f}",
                target="<= 0.95",
                is_met=fmean(ratios) <= 0.95,
            ),
        ],
    )


def _print_blind(campaigns: Sequence[Campaign], told: Sequence[Cell], options: Options) -> None:
    """Print what our policy pays where it learns of capacity by asking for nodes only.

    So does the daemon. The rivals of the paper, and our policy in the table before, are told at any
    time whether there is any.
    """
    blind = replace(CONDITIONS, is_probed=False)
    rows, ratios, late = [], [], 0
    for cell in told:
        (campaign,) = (each for each in campaigns if each.zone == cell.place)
        own = _cell(
            [campaign], cell.deadline_hours, options, blind, (PolicyName.OURS,), bound=False
        )
        usd = own.mean_usd(PolicyName.OURS)
        ratios.append(usd / cell.mean_usd(PolicyName.UNIFORM_PROGRESS))
        late += own.misses(PolicyName.OURS)
        rows.append((f"{cell.deadline_hours:g} h", cell.place, f"{usd:.1f}", f"{ratios[-1]:.3f}"))
    header = ("deadline", "zone", "ours", "ours / uniform, which is told")
    print_table("One pool: capacity learnt from grants and losses only", header, rows)
    print_rows(
        "One pool, capacity not told",
        [
            Row(what="deadlines missed", figure=str(late), target="0", is_met=late == 0),
            Row(
                what="cost over uniform progress, mean of the cells", figure=f"{fmean(ratios):.3f}"
            ),
        ],
    )


class _Moving(NamedTuple):
    """One deadline with all zones as pools."""

    hours: float
    told: Cell  # of capacity, as the rival is
    blind: Cell
    uniform_usd: Mapping[str, float]  # of uniform progress, by zone
    late_runs: int

    @property
    def rival_usd(self) -> float:
        """What uniform progress pays in a zone taken at random."""
        return fmean(self.uniform_usd.values())

    def ratio(self, cell: Cell) -> float:
        """Return our cost over the rival's."""
        return cell.mean_usd(PolicyName.OURS) / self.rival_usd

    def closed(self, cell: Cell) -> float:
        """Return the share of the gap between the rival and perfect foresight that is closed."""
        saved_usd = self.rival_usd - cell.mean_usd(PolicyName.OURS)
        return saved_usd / (self.rival_usd - self.told.foresight_usd)


def print_all_zones(options: Options) -> None:
    """Let our policy move between zones; uniform progress stays in each of them by turns."""
    campaigns = zone_campaigns(require_data(options.data / "spot_traces.csv.gz"))
    found = [_moving(campaigns, hours, options) for hours in DEADLINES_HOURS]
    header = (
        "deadline", "ours", "ours, capacity not told", "uniform progress, mean of zones",
        "in the best zone", "foresight", "ratio", "gap closed", "not told: ratio", "gap closed",
    )  # fmt: skip
    rows = [
        (
            f"{each.hours:g} h",
            *(f"{c.mean_usd(PolicyName.OURS):.1f}" for c in (each.told, each.blind)),
            f"{each.rival_usd:.1f}",
            f"{min(each.uniform_usd.values()):.1f}",
            f"{each.told.foresight_usd:.1f}",
            *(
                text
                for cell in (each.told, each.blind)
                for text in (f"{each.ratio(cell):.3f}", f"{each.closed(cell):.0%}")
            ),
        )
        for each in found
    ]
    print_table("All zones as pools: mean $, moves pay 0.2 h and 0.40 $", header, rows)
    _print_moving_targets(found)


def _moving(campaigns: Sequence[Campaign], hours: float, options: Options) -> _Moving:
    moving = replace(CONDITIONS, checkpoint_gb=CHECKPOINT_GB, move_usd_per_gb=USD_PER_GB)
    uniform = PolicyName.UNIFORM_PROGRESS
    told = _cell(campaigns, hours, options, moving, (PolicyName.OURS,))
    blind = _cell(
        campaigns, hours, options, replace(moving, is_probed=False), (PolicyName.OURS,), bound=False
    )
    alone = [_cell([one], hours, options, CONDITIONS, (uniform,), bound=False) for one in campaigns]
    late = told.misses(PolicyName.OURS) + blind.misses(PolicyName.OURS)
    return _Moving(hours, told, blind, {cell.place: cell.mean_usd(uniform) for cell in alone}, late)


def _print_moving_targets(found: Sequence[_Moving]) -> None:
    late = sum(each.late_runs for each in found)
    runs = sum(len(c.outcomes[PolicyName.OURS]) for each in found for c in (each.told, each.blind))
    rows = [Row(what="deadlines missed", figure=f"{late} of {runs}", target="0", is_met=late == 0)]
    for what, ratios in (
        ("cost over uniform progress, mean", [each.ratio(each.told) for each in found]),
        ("the same, capacity not told", [each.ratio(each.blind) for each in found]),
    ):
        mean = fmean(ratios)
        rows.append(Row(what=what, figure=f"{mean:.3f}", target="<= 0.6", is_met=mean <= 0.6))
    print_rows("All zones: targets", rows)


def study_of(campaigns: Sequence[Campaign], hours: float, conditions: Conditions) -> Study:
    """Return the job in some zones."""
    zones = [campaign.zone for campaign in campaigns]
    job = job_within(hours)
    sure = {Pool(KIND, zones[0], Market.ON_DEMAND): 1}
    return Study(
        job=job,
        source=market_of(zones),
        draw=TracedWindows(trace=MarketTrace(capacity=capacities(campaigns)), seed=SEED),
        fleets=TwoFleets(
            spot={spot_pool(zones[0]): 1},
            sure=sure,
            sure_s=WORK_HOURS * 3600,
            deadline_s=hours * 3600,
            restart_s=RESTART_HOURS * 3600,
        ),
        planned_s=WORK_HOURS * 3600,
        conditions=conditions,
        seed=SEED,
    )


def _cell(
    campaigns: Sequence[Campaign],
    hours: float,
    options: Options,
    conditions: Conditions,
    policies: Sequence[PolicyName],
    *,
    bound: bool = True,
) -> Cell:
    study, pool = study_of(campaigns, hours, conditions), ProcessPool(options.processes)
    outcomes = run_study(study, policies, runs=options.windows, spread=pool, block_runs=_BLOCK_RUNS)
    place = campaigns[0].zone if len(campaigns) == 1 else "all zones"
    windows = [_Bound(study, run) for run in range(options.windows)] if bound else []
    least_usd = list(pool.map(_foresight, windows))
    return Cell(hours, place, outcomes, fmean(least_usd) if least_usd else 0.0)


def _foresight(bound: _Bound) -> float:
    study = bound.study
    hours = (study.job.goal.deadline_s or 0.0) / 3600
    market = study.draw.market(bound.run, study.horizon_s, notice_s=0.0)
    job = OneNodeJob(
        work_hours=WORK_HOURS,
        deadline_hours=hours,
        restart_hours=RESTART_HOURS,
        spot_usd_per_hour=SPOT_USD,
        on_demand_usd_per_hour=ON_DEMAND_USD,
        move_usd=study.conditions.checkpoint_gb * study.conditions.move_usd_per_gb,
    )
    return foresight_usd(market.capacity, job)


def _ratio(cell: Cell) -> float:
    return cell.mean_usd(PolicyName.OURS) / cell.mean_usd(PolicyName.UNIFORM_PROGRESS)


def _print_cells(title: str, cells: Sequence[Cell]) -> None:
    policies = list(cells[0].outcomes)
    header = ("deadline", "zone", *policies, "foresight", "ours / uniform", "late: ours", "uniform")
    rows = [
        (
            f"{cell.deadline_hours:g} h",
            cell.place,
            *(f"{cell.mean_usd(policy):.1f}" for policy in policies),
            f"{cell.foresight_usd:.1f}",
            f"{_ratio(cell):.3f}",
            *(
                str(cell.misses(policy))
                for policy in (PolicyName.OURS, PolicyName.UNIFORM_PROGRESS)
            ),
        )
        for cell in cells
    ]
    print_table(title, header, rows)
