import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.job import JobSpec, Placement
from spotwright.domain.offer import Market, Pool
from spotwright.usecases.predict_fleet import predict_fleet
from tests.usecases.example_job import catalog

EXAMPLES = Path(__file__).parents[2] / "examples"
RESNET = EXAMPLES / "resnet50.yaml"
T4_POOL = Pool.parse("g4dn.12xlarge@use1-az4/on-demand")
FLEET = f"g4dn.12xlarge*4@{T4_POOL.zone}"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def narrowed(file: Path = RESNET, **limits: Any) -> JobSpec:
    spec = read_job_file(file).spec
    return replace(spec, limits=replace(spec.limits, **limits))


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("T4*2", "the deadline of 16.0 h is met with 0.0%, the job wants 95.0%"),
        ("g4dn.12xlarge*40", "40 nodes are more than limits.max_nodes, 32"),
        ("H100*8", "H100 is outside limits.gpus"),
        ("g5.12xlarge*4@use2-az1", "us-east-2 is outside limits.regions"),
        (
            "g4dn.12xlarge*6",
            "288 on-demand g-vt vCPUs in us-east-1 are more than limits.max_vcpus, 256",
        ),
    ],
)
def test_a_what_if_says_what_of_the_job_it_breaks(fleet: str, said: str) -> None:
    assert said in predict_fleet(read_job_file(RESNET).spec, fleet, catalog()).notes


def test_a_deadline_that_only_the_models_own_error_may_miss_is_told_as_such() -> None:
    spec = read_job_file(RESNET).spec
    free = predict_fleet(spec, "g4dn.12xlarge*4", catalog())
    tight = replace(spec, goal=replace(spec.goal, deadline_s=free.duration_s.mid * 1.001))

    (note,) = predict_fleet(tight, "g4dn.12xlarge*4", catalog()).notes

    assert re.fullmatch(
        r"counting the model's own error, the deadline is met with 5[0-9]\.[0-9]%, "
        r"less than the 95\.0% asked of interruptions",
        note,
    )


def test_a_fleet_inside_the_limits_that_meets_the_goal_breaks_nothing() -> None:
    notes = predict_fleet(read_job_file(RESNET).spec, "g4dn.12xlarge*4", catalog()).notes

    assert notes == ()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_count_per_pool": 3}, "are more than limits.max_count_per_pool"),
        ({"max_count_by_type": {"g4dn.12xlarge": 3}}, "4 x g4dn.12xlarge are more than"),
        ({"excluded_types": frozenset({"g4dn.12xlarge"})}, "is in limits.exclude_types"),
        ({"max_usd_per_hour": {Market.ON_DEMAND: 1.0}}, "on-demand nodes cost more than"),
        ({"max_price_by_type_usd_per_hour": {"g4dn.12xlarge": 1.0}}, "limits.max_price allows"),
        ({"markets": frozenset({Market.SPOT})}, "on-demand is outside limits.markets"),
        ({"excluded_pools": {T4_POOL: None}}, f"{T4_POOL} is in limits.exclude_pools"),
        (
            {"excluded_pools": {T4_POOL: NOON}},
            f"{T4_POOL} is in limits.exclude_pools until 2026-11-16 12:00 UTC",
        ),
        (
            {"min_count_by_pool": {T4_POOL: 5}},
            f"4 workers of {T4_POOL} are fewer than limits.pin_pools, 5",
        ),
        (
            {"min_count_by_pool": {Pool.parse("g5.xlarge@use1-az4/spot"): 1, T4_POOL: 4}},
            "0 workers of g5.xlarge@use1-az4/spot are fewer than limits.pin_pools, 1",
        ),
    ],
)
def test_every_limit_that_breaks_is_told(limits: dict[str, Any], said: str) -> None:
    (note,) = predict_fleet(narrowed(**limits), FLEET, catalog()).notes

    assert said in note


def test_a_pool_whose_cool_down_is_over_breaks_nothing() -> None:
    job = narrowed(excluded_pools={T4_POOL: NOON})

    before, after = (
        predict_fleet(job, FLEET, catalog(), now=NOON + timedelta(minutes=m)).notes for m in (-1, 0)
    )

    assert (len(before), after) == (1, ())


def test_vcpus_are_counted_in_each_region_by_itself() -> None:
    everywhere: dict[str, Any] = {"regions": frozenset(), "placement": Placement.ANYWHERE}
    fleet = "g4dn.12xlarge*4@use1-az4 + g4dn.12xlarge*5@use2-az1"  # 48 vCPUs each

    def told(quota: int) -> list[str]:
        job = narrowed(max_vcpus={("g-vt", Market.ON_DEMAND): quota}, **everywhere)
        notes = predict_fleet(job, fleet, catalog()).notes
        return [note for note in notes if "max_vcpus" in note]

    assert told(5 * 48) == []
    assert told(4 * 48) == [
        "240 on-demand g-vt vCPUs in us-east-2 are more than limits.max_vcpus, 192"
    ]
    assert [note.split()[0] for note in told(4 * 48 - 1)] == ["192", "240"]


def test_parameter_servers_are_counted_and_their_pools_may_be_excluded() -> None:
    job = narrowed(
        EXAMPLES / "text-cnn-bsp.yaml",
        max_parameter_servers=2,
        excluded_pools={Pool.parse("m5.xlarge@use1-az4/on-demand"): None},
        min_count_by_pool={Pool.parse("m5.xlarge@use1-az4/on-demand"): 1},  # as workers
    )

    notes = predict_fleet(job, "T4*2@use1-az4 + ps=m5.xlarge*3@use1-az4", catalog()).notes

    assert "3 parameter servers are more than limits.max_parameter_servers, 2" in notes
    assert "m5.xlarge@use1-az4/on-demand is in limits.exclude_pools" in notes
    assert any(note.startswith("0 workers of m5.xlarge@use1-az4/on-demand") for note in notes)
