from pathlib import Path

import pytest

from spotwright.adapters.jobfile.read import read_job_file
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
    ],
)
def test_a_what_if_says_what_of_the_job_it_breaks(fleet: str, said: str) -> None:
    assert said in predict_fleet(read_job_file(RESNET).spec, fleet, catalog()).notes


def test_a_fleet_inside_the_limits_that_meets_the_goal_breaks_nothing() -> None:
    notes = predict_fleet(read_job_file(RESNET).spec, "g4dn.12xlarge*4", catalog()).notes

    assert notes == ()
