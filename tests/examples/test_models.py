"""The models that `spotwright profile` is shown with."""

from pathlib import Path

import pytest

from spotwright.profiler.devices import HOST
from spotwright.profiler.find import find_subject
from spotwright.profiler.sizes import measure_sizes
from spotwright.profiler.training import Trainee

MODELS = Path(__file__).parents[2] / "examples" / "models"

# Multiply-adds of one sample, forward: by hand from the shapes in each file.
CNN = 3 * 32 * 9 * 32**2 + 32 * 64 * 9 * 16**2 + 64 * 128 * 9 * 8**2 + 128 * 10
CNN_FIRST = 3 * 32 * 9 * 32**2  # passes no gradient back
TOKENS, WIDTH, LAYERS, WORDS = 64, 128, 2, 4096
ATTENTION = 4 * TOKENS * WIDTH**2 + 2 * TOKENS**2 * WIDTH
TRANSFORMER = LAYERS * (ATTENTION + 8 * TOKENS * WIDTH**2) + TOKENS * WIDTH * WORDS


@pytest.mark.parametrize(
    ("name", "flops"),
    [("small_cnn", 2 * (3 * CNN - CNN_FIRST)), ("tiny_transformer", 2 * 3 * TRANSFORMER)],
)
def test_operations_are_those_of_the_shapes(name: str, flops: int) -> None:
    trainee = Trainee(find_subject(str(MODELS / f"{name}.py")), HOST)

    sizes = measure_sizes(trainee, batch=2)

    assert sizes.flops_per_sample == flops
