from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spotwright.adapters.jobfile.read import read_job_file
from spotwright.domain.offer import Market
from spotwright.usecases.predict_fleet import predict_fleet
from tests.usecases.example_job import catalog

RESNET = Path(__file__).parents[2] / "examples" / "resnet50.yaml"


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("T4*2", "the deadline of 16.0 h is met with 0.0%, the job wants 95.0%"),
        ("g4dn.12xlarge*40", "40 nodes are more than limits.max_nodes, 32"),
        ("H100*8", "H100 is outside limits.gpus"),
        ("g5.12xlarge*4@use2-az1", "us-east-2 is outside limits.regions"),
        ("g4dn.12xlarge*6", "288 on-demand g-vt vCPUs are more than limits.max_vcpus, 256"),
    ],
)
def test_a_what_if_says_what_of_the_job_it_breaks(fleet: str, said: str) -> None:
    assert said in predict_fleet(read_job_file(RESNET).spec, fleet, catalog()).notes


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
    ],
)
def test_every_limit_that_breaks_is_told(limits: dict[str, Any], said: str) -> None:
    spec = read_job_file(RESNET).spec
    narrow = replace(spec, limits=replace(spec.limits, **limits))

    (note,) = predict_fleet(narrow, "g4dn.12xlarge*4", catalog()).notes

    assert said in note
