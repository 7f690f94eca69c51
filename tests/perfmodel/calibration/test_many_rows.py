"""Thousands of noisy rows: the fit comes as close to the truth as their number promises."""

from itertools import product

import pytest

from spotwright.domain.job import JobSpec
from spotwright.domain.workload import AllreduceTuning, ComputeProfile, ParameterServing, Strategy
from tests.perfmodel.calibration.synthetic_rows import configurations, fit, measure, steps_s, truth

PROFILE = {"T4": ComputeProfile(fixed_s=0.03, per_sample_s=0.006)}
RING = truth(Strategy.ALLREDUCE, compute=PROFILE, allreduce=AllreduceTuning())
SERVED = truth(Strategy.ASP_PS, compute=PROFILE, parameter_serving=ParameterServing())
RINGS = [f"g4dn.12xlarge:{gpus}*{nodes}" for gpus, nodes in product((1, 2, 4), (1, 2, 3, 4, 6))]
WORKERS = [f"g4dn.xlarge*{count}" for count in range(1, 16)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("real", "seen", "unseen"),
    [
        (RING, RINGS, ["g4dn.12xlarge:4*8", "g4dn.12xlarge:3*5"]),
        (SERVED, WORKERS, ["g4dn.xlarge*20", "g4dn.xlarge*17"]),
    ],
    ids=["allreduce", "asp-ps"],
)
def test_three_thousand_noisy_rows_predict_unseen_fleets(
    real: JobSpec, seen: list[str], unseen: list[str]
) -> None:
    strategy = real.workload.strategy
    rows = configurations(strategy, *seen, batches=range(8, 208))
    asked = configurations(strategy, *unseen, batches=(16, 100))

    found = fit(measure(rows, real, noise=0.05))

    assert found.calibration.row_count == len(rows) == 3000
    # the mean of |exp(0.05 z) - 1|, z a standard normal, is 0.05 * sqrt(2 / pi) = 0.040
    assert found.calibration.fit_error_fraction == pytest.approx(0.040, rel=0.1)
    assert steps_s(asked, found.job) == pytest.approx(steps_s(asked, real), rel=0.03)
