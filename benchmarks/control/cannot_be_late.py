"""One V100 for 48 h through the campaign of 15 February 2023, beside the policies of the paper."""

from collections.abc import Sequence
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


def print_all_zones(options: Options) -> None:
    """Let our policy move between zones; uniform progress stays in each of them by turns."""
    campaigns = zone_campaigns(require_data(options.data / "spot_traces.csv.gz"))
    moving = replace(CONDITIONS, checkpoint_gb=CHECKPOINT_GB, move_usd_per_gb=USD_PER_GB)
    rows, ratios, late, runs = [], [], 0, 0
    for hours in DEADLINES_HOURS:
        ours = _cell(campaigns, hours, options, moving, (PolicyName.OURS,))
        alone = [
            _cell([one], hours, options, CONDITIONS, (PolicyName.UNIFORM_PROGRESS,), bound=False)
            for one in campaigns
        ]
        uniform_usd = fmean(cell.mean_usd(PolicyName.UNIFORM_PROGRESS) for cell in alone)
        ours_usd, least_usd = ours.mean_usd(PolicyName.OURS), ours.foresight_usd
        ratios.append(ours_usd / uniform_usd)
        late += ours.misses(PolicyName.OURS)
        runs += len(ours.outcomes[PolicyName.OURS])
        closed = (uniform_usd - ours_usd) / (uniform_usd - least_usd)
        figures = (ours_usd, uniform_usd, least_usd)
        rows.append(
            (
                f"{hours:g} h",
                *(f"{usd:.1f}" for usd in figures),
                f"{ratios[-1]:.3f}",
                f"{closed:.0%}",
            )
        )
    header = (
        "deadline",
        "ours",
        "uniform progress, mean of zones",
        "foresight",
        "ratio",
        "gap closed",
    )
    print_table("All zones as pools: mean $, moves pay 0.2 h and 0.40 $", header, rows)
    print_rows(
        "All zones: targets",
        [
            Row(what="deadlines missed", figure=f"{late} of {runs}", target="0", is_met=late == 0),
            Row(
                what="cost over uniform progress, mean of the cells",
                figure=f"{fmean(ratios):.3f}",
                target="<= 0.6",
                is_met=fmean(ratios) <= 0.6,
            ),
        ],
    )


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
    outcomes = run_study(study, policies, runs=options.windows, spread=pool)
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
    header = ("deadline", "zone", *policies, "foresight", "ours / uniform", "ours late")
    rows = [
        (
            f"{cell.deadline_hours:g} h",
            cell.place,
            *(f"{cell.mean_usd(policy):.1f}" for policy in policies),
            f"{cell.foresight_usd:.1f}",
            f"{_ratio(cell):.3f}",
            str(cell.misses(PolicyName.OURS)),
        )
        for cell in cells
    ]
    print_table(title, header, rows)
