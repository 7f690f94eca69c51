"""Hundreds of GPUs in one ring, the sizes at which Sailor (SOSP 2025) times its planner.

Sailor also chooses pipeline and tensor parallelism, we do not: its times, 0.75 and 7.0 CPU s, are
those it prints for its own, larger question on its own machine. Nodes have four GPUs; every pool
may be used up. The job has the size of OPT-350M.
"""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.planner.jobs import within
from benchmarks.planner.markets import catalog, repriced
from benchmarks.planner.table import Row, print_rows
from benchmarks.planner.timing import patience_s, tell, timed_solve
from spotwright.domain.hardware import Cloud, InstanceType, Precision
from spotwright.domain.job import Goal, JobSpec, Limits, Placement, Target, TargetKind
from spotwright.domain.offer import Market, Offer
from spotwright.domain.plan import Objective
from spotwright.domain.workload import (
    AllreduceTuning,
    FixedBatch,
    Links,
    ModelSize,
    Strategy,
    Workload,
)
from spotwright.planner.problem import Problem

DEADLINES = (1.02, 1.1, 1.5, 3.0)
_A100, _V100 = "a2-highgpu-4g", "n1-standard-32-v100-4"
_USD_PER_HOUR = {_A100: 8.5, _V100: 4.0}
_NETWORK_MBPS = {_A100: 50e3, _V100: 32e3}  # the catalog has no figures for GCP


def print_large_rings() -> list[Row]:
    """Run and print."""
    tell("large rings")
    one_region = _problem([_A100], zones=5, regions=1, nodes_per_pool=32)
    five_regions = _problem([_A100], zones=5, regions=5, nodes_per_pool=32)
    two_types = _problem([_A100, _V100], zones=1, regions=1, nodes_per_pool=64)
    two_types_four_zones = _problem([_A100, _V100], zones=4, regions=1, nodes_per_pool=16)
    rows = [
        _row("640 GPUs, one type, five zones of a region", one_region, target_s=0.5),
        _row("640 GPUs, one type, five regions", five_regions, target_s=0.5),
        _row("512 GPUs, two types, one zone", two_types, target_s=1.0, sailor_s=7.0),
        _row("512 GPUs, two types, four zones", two_types_four_zones, target_s=1.0, sailor_s=7.0),
    ]
    print_rows("Large rings: the fastest fleet, and the cheapest at four deadlines", rows)
    return rows


def _row(what: str, problem: Problem, *, target_s: float, sailor_s: float = 0.75) -> Row:
    runs = [timed_solve(f"{what}, fastest", problem, objective=Objective.TIME)]
    fastest_s = runs[0].solution.duration_s
    for multiple in DEADLINES:
        limited = replace(problem, job=within(problem.job, multiple * fastest_s))
        name = f"{what}, {multiple:g} x fastest"
        runs.append(timed_solve(name, limited, limit_s=patience_s(runs)))
    sailor = {"Sailor, as printed:": f"{sailor_s} CPU s"}
    return Row(what=what, runs=runs, target_s=target_s, rivals=sailor)


def _problem(kinds: Sequence[str], *, zones: int, regions: int, nodes_per_pool: int) -> Problem:
    gcp = catalog(Cloud.GCP)
    offers = [
        _offer(gcp.instance_type(kind), region=f"region{zone % regions}", zone=f"zone{zone}")
        for kind in kinds
        for zone in range(zones)
    ]
    return Problem(
        job=_job(nodes_per_pool, max_nodes=len(offers) * nodes_per_pool, regions=regions),
        worker_offers=repriced(offers, seed=zones),
        server_offers=[],
        gpu_facts=gcp.gpu,
    )


def _offer(kind: InstanceType, *, region: str, zone: str) -> Offer:
    return Offer(
        instance_type=kind,
        region=region,
        zone=zone,
        market=Market.SPOT,
        price_usd_per_hour=_USD_PER_HOUR[kind.name],
        interruption_fraction=0.1,
    )


def _job(nodes_per_pool: int, *, max_nodes: int, regions: int) -> JobSpec:
    return JobSpec(
        name="opt-350m",
        workload=Workload(
            strategy=Strategy.ALLREDUCE,
            model=ModelSize(
                parameter_bytes=0.7e9,
                tensor_count=388,
                flops_per_sample=4.3e12,
                precision=Precision.FP16,
                parameter_count=3.5e8,
            ),
            batch=FixedBatch(per_gpu_count=4),
            allreduce=AllreduceTuning(
                links={name: Links(network_mbps=mbps) for name, mbps in _NETWORK_MBPS.items()}
            ),
        ),
        goal=Goal(target=Target(kind=TargetKind.SAMPLES, value=3e8)),
        limits=Limits(
            cloud=Cloud.GCP,
            max_nodes=max_nodes,
            max_count_per_pool=nodes_per_pool,
            placement=Placement.ANYWHERE if regions > 1 else Placement.ONE_REGION,
        ),
    )
