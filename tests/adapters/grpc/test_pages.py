from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.grpc.pages import page_size_of, start_of, start_token
from spotwright.domain.errors import BadInputError
from spotwright.usecases.store_ports import PageStart

_IDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)


@given(st.datetimes(timezones=st.just(UTC)), _IDS)
def test_a_token_says_where_to_go_on(time: datetime, last_id: str) -> None:
    assert start_of(start_token(time, last_id)) == PageStart(time, last_id)


@given(st.text(min_size=1))
def test_what_is_no_token_is_bad_input_and_nothing_else(text: str) -> None:
    try:
        place = start_of(text)
    except BadInputError:
        return
    assert place is not None
    assert start_token(*place) == text


def test_no_token_is_the_first_page() -> None:
    assert start_of("") is None


@pytest.mark.parametrize(("asked", "size"), [(0, 50), (1, 1), (1000, 1000), (10**6, 1000)])
def test_a_page_has_its_bounds(asked: int, size: int) -> None:
    assert page_size_of(asked, usual=50) == size


def test_a_negative_page_is_bad_input() -> None:
    with pytest.raises(BadInputError, match="must not be negative, got -1"):
        page_size_of(-1, usual=50)
