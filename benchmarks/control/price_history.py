"""A mixed fleet of spot workers on the prices of 2023 to 2025, against perfect foresight of them.

Prices of both markets are those of the history, change by change. Nodes are taken away as often as
the advisor's buckets said that were published nearest to the year; half of it takes a whole pool.
Foresight knows every price of its window in advance, is never interrupted and changes fleets for
nothing: with w the work done in an epoch k between two price changes at a speed between r_i and
r_(i+1), and g_ki the cheapest fleet at least as fast as r_i at the prices of k,

    minimise  sum w_ki g_ki   subject to  sum w_ki = 1,  r_i t_ki <= w_ki <= r_(i+1) t_ki,
                                          sum_i t_ki <= length of k

so that no policy that pays these prices is cheaper.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from benchmarks.control.options import SEED, Options, require_data
from benchmarks.table import Row, print_rows, print_table
from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.adapters.sweeps.process_pool import ProcessPool
from spotwright.adapters.traces.price_history import read_price_history
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.fleet import NodeGroup, Role
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import Goal, JobSpec, Limits, Target, TargetKind
from spotwright.domain.offer import Market, Offer, Pool
from spotwright.domain.workload import (
    Contention,
    FixedBatch,
    ModelSize,
    ParameterServing,
    Strategy,
    Workload,
)
from spotwright.perfmodel.interruption import hazard_per_hour
from spotwright.simulator.conditions import Conditions
from spotwright.simulator.draw import AtPrices, DrawnHazards
from spotwright.simulator.outcome import Outcome
from spotwright.simulator.policies.registry import PolicyName
from spotwright.simulator.series import Series
from spotwright.simulator.study import Study, run_study
from spotwright.simulator.summary import mean_with_bounds
from spotwright.simulator.two_fleets import two_fleets
from spotwright.usecases.fleet_choices import FleetChoices, Question
from spotwright.usecases.list_offers import worker_offers

REGION, SERVER = "us-east-1", "m5.xlarge"
ZONES = ("use1-az1", "use1-az2", "use1-az4", "use1-az6")
TYPES = (
    "g4dn.xlarge", "g4dn.2xlarge", "g4dn.12xlarge", "g5.xlarge", "g5.2xlarge", "g5.12xlarge",
    "g6.xlarge", "g6.2xlarge", "g6.12xlarge", "p3.2xlarge", "p3.8xlarge",
)  # fmt: skip
ADVISOR = {2023: "2024-02-28", 2024: "2024-02-28", 2025: "2025-06-28"}  # the nearest snapshot
_FRACTIONS = {"0": 0.025, "1": 0.075, "2": 0.125, "3": 0.175, "4": 0.30}  # middles of the buckets
_DEADLINE_HOURS, _GPU_HOURS = 52.0, 48.0 * 10  # of one T4
_SPEEDS = (0.0, 0.7, 0.9, 1.0, 1.2, 1.6)  # bands of foresight, in 1 / deadline
_MOST_PER_TYPE, _MOST_NODES = 4, 24
_MOST_WINDOWS = 100  # of a year: foresight takes seconds for each


class Year(NamedTuple):
    """One year's market and job."""

    year: int
    study: Study
    pools: int


class Window(NamedTuple):
    """One window of a year, for another process."""

    study: Study
    run: int


@dataclass(frozen=True, slots=True)
class Savings:
    """What policies pay in a year, window by window."""

    year: Year
    ours: Sequence[Outcome]
    on_demand: Sequence[Outcome]
    foresight_usd: Sequence[float]

    @property
    def shares(self) -> list[float]:
        """What is saved against on-demand nodes, window by window."""
        pairs = zip(self.ours, self.on_demand, strict=True)
        return [1 - ours.cost_usd / sure.cost_usd for ours, sure in pairs]

    @property
    def of_foresight(self) -> list[float]:
        """The saving over that of perfect foresight, window by window."""
        rows = zip(self.ours, self.on_demand, self.foresight_usd, strict=True)
        return [(sure.cost_usd - ours.cost_usd) / (sure.cost_usd - usd) for ours, sure, usd in rows]


def print_price_history(options: Options) -> None:
    """Hold our controller against on-demand nodes and foresight, year by year."""
    pool, runs = ProcessPool(options.processes), min(options.windows, _MOST_WINDOWS)
    savings = []
    for year in (2023, 2024, 2025):
        market = _year(options.data, year)
        policies = (PolicyName.OURS, PolicyName.ON_DEMAND)
        outcomes = run_study(market.study, policies, runs=runs, spread=pool)
        windows = [Window(market.study, run) for run in range(runs)]
        least_usd = list(pool.map(foresight_of_prices_usd, windows))
        ours, on_demand = (outcomes[policy] for policy in policies)
        savings.append(Savings(market, ours, on_demand, least_usd))
    _print_years(savings)
    _print_targets(savings)


def foresight_of_prices_usd(window: Window) -> float:
    """Return the least that a job can cost for somebody who knows all prices."""
    study = window.study
    deadline_s = study.fleets.deadline_s
    choices = FleetChoices(study.job, study.source)
    market = study.draw.market(window.run, study.horizon_s, notice_s=0.0)
    edges = sorted({t for series in market.prices.values() for t in series.times_s})
    edges = [t for t in edges if t < deadline_s] + [deadline_s]
    costs = [
        _band_costs(choices, {p: s.at(begin_s) for p, s in market.prices.items()}, study)
        for begin_s in edges[:-1]
    ]
    lengths = np.diff(edges) / deadline_s
    return _least_usd(costs, lengths)


def _band_costs(
    choices: FleetChoices, prices: Mapping[Pool, float], study: Study
) -> list[float | None]:
    """Return what all of the goal costs on the cheapest fleet that is at least so fast."""
    safe = {pool: 0.0 for pool in prices if pool.market is Market.SPOT}
    deadline_s = study.fleets.deadline_s
    found = [
        choices.best(
            Question(
                # Deadlines are rounded down by up to 2 %: this keeps the bound a bound.
                deadline_s=1.021 * deadline_s / speed if speed else 100 * deadline_s,
                hazards_per_hour=safe,
                prices_usd_per_hour=prices,
            )
        )
        for speed in _SPEEDS
    ]
    return [choice.cost_usd if choice else None for choice in found]


def _least_usd(costs: Sequence[Sequence[float | None]], lengths: "np.ndarray") -> float:
    """Solve the linear program of the module's docstring, time in deadlines."""
    fastest = 10 * _SPEEDS[-1]
    bands = [
        (k, usd, low, high)
        for k, row in enumerate(costs)
        for usd, low, high in zip(row, _SPEEDS, (*_SPEEDS[1:], fastest), strict=True)
        if usd is not None
    ]
    count = len(bands)
    objective = [usd for _, usd, _, _ in bands] + [0.0] * count
    rows, limits = [], []
    for place, (_, _, low, high) in enumerate(bands):
        for work, time in ((1.0, -high), (-1.0, low)):
            row = np.zeros(2 * count)
            row[place], row[count + place] = work, time
            rows.append(row)
            limits.append(0.0)
    for epoch, length in enumerate(lengths):
        row = np.zeros(2 * count)
        row[count:] = [float(k == epoch) for k, _, _, _ in bands]
        rows.append(row)
        limits.append(float(length))
    whole = np.concatenate([np.ones(count), np.zeros(count)])
    solved = linprog(objective, A_ub=rows, b_ub=limits, A_eq=[whole], b_eq=[1.0])
    if solved.status != 0:
        raise RuntimeError(f"foresight has no solution: {solved.message}")
    return float(solved.fun)


def _year(data: Path, year: int) -> Year:
    begin, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)
    history = read_price_history(
        require_data(data / "aws_gpu_spot_prices.parquet"),
        instance_types=TYPES,
        zones=ZONES,
        begin=begin,
        end=end,
    )
    catalog = Catalog(_snapshot(history.prices, begin, _buckets(data, ADVISOR[year])))
    job = _job()
    choices = FleetChoices(job, catalog)
    planned = choices.best(Question(deadline_s=_DEADLINE_HOURS * 3600))
    if planned is None:
        raise RuntimeError(f"no fleet for the job at the prices of {begin:%Y-%m-%d}")
    spot = [o for o in worker_offers(job, catalog) if o.market is Market.SPOT]
    hazards = DrawnHazards(
        hazards_per_hour={offer.pool: _hazard(job, offer) for offer in spot},
        common_fraction=job.workload.spot.common_shock_fraction,
        most_nodes=_MOST_NODES,
        seed=SEED,
    )
    study = Study(
        job=job,
        source=catalog,
        draw=AtPrices(draw=hazards, prices=history.prices, seed=SEED),
        fleets=two_fleets(choices, planned=planned.workers, servers=planned.servers),
        servers=planned.servers,
        planned_s=planned.duration_s,
        conditions=Conditions(is_probed=False),
        seed=SEED,
    )
    return Year(year, study, len(history.prices))


def _job() -> JobSpec:
    """Return an asynchronous job: ResNet-50's work at 11.5 MB, compute by roofline."""
    return JobSpec(
        name="mixed",
        workload=Workload(
            strategy=Strategy.ASP_PS,
            model=ModelSize(parameter_bytes=11.5e6, tensor_count=60, flops_per_sample=24.6e9),
            batch=FixedBatch(per_gpu_count=128),
            parameter_serving=ParameterServing(
                default_type=SERVER,
                contention=Contention.SPOTDNN,
                bandwidth_mbps=9600.0,
                requested_mbps=1136.0,
                contention_slope=0.12,
                contention_offset=0.1,
            ),
        ),
        goal=Goal(
            target=Target(kind=TargetKind.SAMPLES, value=_GPU_HOURS * 3600 * 250),
            deadline_s=_DEADLINE_HOURS * 3600,
        ),
        limits=Limits(
            max_nodes=_MOST_NODES,
            max_count_by_type=dict.fromkeys(TYPES, _MOST_PER_TYPE),
            max_parameter_servers=1,
            parameter_server_types=frozenset({SERVER}),
        ),
    )


def _snapshot(
    prices: Mapping[Pool, Series], begin: datetime, buckets: Mapping[str, float]
) -> Snapshot:
    """Return the types and zones that have prices all year, as they stood when it began."""
    bundled = load_snapshot(bundled_path(Cloud.AWS))
    pairs = sorted({(pool.instance_type, pool.zone) for pool in prices})
    names = {name for name, _ in pairs} | {SERVER}
    rows = [
        ZonePrice(name, REGION, zone, *(_first(prices, name, zone, m) for m in _BOTH))
        for name, zone in pairs
    ]
    servers = [p for p in bundled.prices if p.instance_type == SERVER and p.zone in ZONES]
    return replace(
        bundled,
        price_times={REGION: begin},
        retired_price_times={},
        instance_types={
            name: replace(bundled.instance_types[name], retired=False) for name in names
        },
        prices=(*rows, *servers),
        interruption_fraction={(REGION, name): share for name, share in buckets.items()},
    )


_BOTH = (Market.ON_DEMAND, Market.SPOT)


def _first(prices: Mapping[Pool, Series], name: str, zone: str, market: Market) -> float | None:
    series = prices.get(Pool(name, zone, market))
    return series.values[0] if series else None


def _buckets(data: Path, snapshot_date: str) -> dict[str, float]:
    with require_data(data / "aws_spot_advisor.csv").open(encoding="utf-8") as file:
        return {
            row["instance_type"]: _FRACTIONS[row["bucket"]]
            for row in csv.DictReader(file)
            if row["snapshot_date"] == snapshot_date
            and row["region"] == REGION
            and row["instance_type"] in TYPES
        }


def _hazard(job: JobSpec, offer: Offer) -> float:
    kind = offer.instance_type
    node = NodeGroup(
        role=Role.WORKER,
        instance_type=kind,
        node_count=1,
        gpus_per_node=kind.gpu_count,
        offer=offer,
    )
    return hazard_per_hour(job.workload, node)


def _print_years(savings: Sequence[Savings]) -> None:
    header = (
        "year", "pools", "on-demand $", "ours $", "foresight $", "saving, 95 % bounds",
        "of foresight's", "types at once", "nodes lost", "late",
    )  # fmt: skip
    rows = []
    for each in savings:
        low, mid, high = mean_with_bounds(each.shares)
        rows.append(
            (
                str(each.year.year),
                str(each.year.pools),
                f"{fmean(o.cost_usd for o in each.on_demand):.0f}",
                f"{fmean(o.cost_usd for o in each.ours):.0f}",
                f"{fmean(each.foresight_usd):.0f}",
                f"{mid:.1%} ({low:.1%} to {high:.1%})",
                f"{fmean(each.of_foresight):.1%}",
                f"{fmean(len(_types(o)) for o in each.ours):.1f}",
                f"{fmean(o.losses for o in each.ours):.2f}",
                str(sum(o.is_late for o in each.ours)),
            )
        )
    print_table("Mixed fleet on the prices of three years, us-east-1", header, rows)


def _types(outcome: Outcome) -> set[str]:
    paid = (pool for pool, seconds in outcome.node_s_by_pool.items() if seconds > 3600)
    return {pool.instance_type for pool in paid if pool.instance_type != SERVER}


def _print_targets(savings: Sequence[Savings]) -> None:
    late = sum(outcome.is_late for each in savings for outcome in each.ours)
    runs = sum(len(each.ours) for each in savings)
    low, mid, high = mean_with_bounds([share for each in savings for share in each.shares])
    reached = mean_with_bounds([share for each in savings for share in each.of_foresight])
    print_rows(
        "Price history: targets",
        [
            Row(what="saving against on-demand", figure=f"{mid:.1%} ({low:.1%} to {high:.1%})"),
            Row(
                what="share of what foresight of prices saves",
                figure=f"{reached.mid:.1%} ({reached.low:.1%} to {reached.high:.1%})",
                target=">= 90 %",
                is_met=reached.mid >= 0.9,
            ),
            Row(what="deadlines missed", figure=f"{late} of {runs}", target="0", is_met=late == 0),
        ],
    )
