import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain.errors import BadInputError
from spotwright.domain.offer import Market, Pool

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True)


@given(NAMES, NAMES, st.sampled_from(Market))
def test_a_pool_reads_back_as_it_prints(instance_type: str, zone: str, market: Market) -> None:
    pool = Pool(instance_type, zone, market)

    assert Pool.parse(f"{instance_type}@{zone}/{market.value}") == pool
    assert Pool.parse(str(pool)) == pool


@pytest.mark.parametrize(
    "text",
    [
        "",
        "g5.xlarge",
        "g5.xlarge@use1-az4",
        "g5.xlarge/spot",
        "g5.xlarge@use1-az4/",
        "g5.xlarge@use1-az4/sport",
        "g5.xlarge@use1-az4/Spot",
        "g5.xlarge@use1-az4/spot/spot",
        "g5.xlarge@a@use1-az4/spot",
        "@use1-az4/spot",
        "g5.xlarge@/spot",
        " g5.xlarge@use1-az4/spot",
        "g5.xlarge @ use1-az4/spot",
        "g5.xlarge@use1-az4/spot\n",
        "g5.xlarge*3@use1-az4/spot + T4",
    ],
)
def test_what_is_not_a_pool_is_told_what_a_pool_looks_like(text: str) -> None:
    shape = "write TYPE@ZONE/MARKET, such as g5.xlarge@use1-az4/spot (a market is spot or on-demand"

    with pytest.raises(BadInputError, match=re.escape(f"{text!r} is not a pool; {shape}")):
        Pool.parse(text)
