import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.perfmodel.batch_split import micro_batches, split_by_speed
from tests.perfmodel.example_clusters import Floats, fleet_of

gpus = st.tuples(st.integers(0, 40), st.floats(0, 2), st.floats(1e-4, 1))
mixes = st.lists(gpus, min_size=1, max_size=6).filter(lambda mix: any(n for n, _, _ in mix))


def split(mix: list[tuple[int, float, float]], whole: float) -> Floats:
    counts, fixed_s, per_sample_s = (fleet_of(*column) for column in zip(*mix, strict=True))
    return split_by_speed(counts, fixed_s=fixed_s, per_sample_s=per_sample_s, global_batch=whole)[
        :, 0
    ]


@given(mix=mixes, whole=st.integers(1, 10_000))
def test_the_shares_add_up_to_the_whole_batch(
    mix: list[tuple[int, float, float]], whole: int
) -> None:
    total = sum(n * share for (n, _, _), share in zip(mix, split(mix, whole), strict=True))

    assert total == pytest.approx(whole)


@given(mix=mixes, whole=st.integers(1, 10_000))
def test_all_gpus_that_get_work_finish_together_and_the_rest_would_finish_later(
    mix: list[tuple[int, float, float]], whole: int
) -> None:
    shares = split(mix, whole)
    present = [(f, s, b) for (n, f, s), b in zip(mix, shares, strict=True) if n]

    finish_s = [f + s * b for f, s, b in present if b > 0]

    assert finish_s == pytest.approx([finish_s[0]] * len(finish_s))
    assert all(f >= finish_s[0] * (1 - 1e-9) for f, _, b in present if b == 0)


def test_a_gpu_twice_as_fast_takes_twice_the_share() -> None:
    shares = split([(2, 0.0, 0.01), (1, 0.0, 0.005)], 400)

    assert shares == pytest.approx([100, 200])


@pytest.mark.parametrize(
    ("share", "largest", "count"),
    [(33, 32, 2), (32, 32, 1), (0, 32, 1), (96.0, 32, 3), (7, None, 1)],
)
def test_a_share_too_large_for_a_gpu_is_worked_off_in_parts(
    share: float, largest: float | None, count: int
) -> None:
    assert micro_batches(np.array([share]), largest=largest)[0] == count
