import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.domain import units
from spotwright.domain.errors import UnitError

Parse = Callable[[str | float], float]
READERS = [
    units.parse_duration_s,
    units.parse_bytes,
    units.parse_gib,
    units.parse_mbps,
    units.parse_usd,
    units.parse_count,
    units.parse_flops,
    units.parse_fraction,
]


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (units.parse_duration_s, "4h", 14_400.0),
        (units.parse_duration_s, " 90 min ", 5_400.0),
        (units.parse_duration_s, "1h30m", 5_400.0),
        (units.parse_duration_s, "1 d 2 h 3 min 4 s", 93_784.0),
        (units.parse_duration_s, "0.108 ms", 0.000_108),
        (units.parse_duration_s, "3 µs", 0.000_003),
        (units.parse_duration_s, "1e3 s", 1_000.0),
        (units.parse_duration_s, "900", 900.0),
        (units.parse_duration_s, 0.25, 0.25),
        (units.parse_bytes, "11.54 MB", 11_540_000.0),
        (units.parse_bytes, "2 GiB", 2_147_483_648.0),
        (units.parse_bytes, "1,024 kB", 1_024_000.0),
        (units.parse_bytes, 7, 7.0),
        (units.parse_gib, "24 GiB", 24.0),
        (units.parse_gib, "1536 MiB", 1.5),
        (units.parse_gib, 24, 24.0),
        (units.parse_mbps, "10 Gbit/s", 10_000.0),
        (units.parse_mbps, "1.2 GB/s", 9_600.0),
        (units.parse_mbps, "1 MiB/s", 8.388_608),
        (units.parse_mbps, 672, 672.0),
        (units.parse_usd, "$1,250.50", 1_250.5),
        (units.parse_usd, "20 USD", 20.0),
        (units.parse_usd, 0.5, 0.5),
        (units.parse_count, "1.2M", 1_200_000.0),
        (units.parse_count, "5e9", 5e9),
        (units.parse_count, "1_281_167", 1_281_167.0),
        (units.parse_count, "6.74B", 6.74e9),
        (units.parse_flops, "12.3 GFLOP", 12.3e9),
        (units.parse_fraction, "95%", 0.95),
        (units.parse_fraction, "0.95", 0.95),
        (units.parse_fraction, 0, 0.0),
        (units.parse_fraction, "100 %", 1.0),
    ],
)
def test_a_quantity_is_read_in_the_units_of_the_code(
    parse: Parse, text: str | float, expected: float
) -> None:
    assert parse(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "fraction"), [("95%", 0.95), ("12.3 %", 0.123), ("7%", 0.07), ("1e1%", 0.1)]
)
def test_a_percentage_is_exactly_the_decimal_fraction(text: str, fraction: float) -> None:
    assert units.parse_fraction(text) == fraction


@given(st.decimals(min_value=0, max_value=100, places=6))
def test_any_percentage_is_the_float_nearest_to_its_hundredth(percent: Decimal) -> None:
    assert units.parse_fraction(f"{percent}%") == float(Fraction(percent) / 100)


@pytest.mark.parametrize("text", ["1e999999999999999999999", "1e99999999 GB", "9" * 5000 + " h"])
def test_a_number_beyond_all_floats_is_a_unit_error(text: str) -> None:
    with pytest.raises(UnitError):
        units.parse_bytes(text)


@pytest.mark.parametrize("parse", READERS)
@pytest.mark.parametrize(
    "value",
    [
        *("", "   ", "h", "%", "-1", "-4h", "nan", "inf", "-inf", "1e400", "1 parsec", "4 h!"),
        *("0x10", "1,5", "1,5 h", "1_", "1__0", "1.2.3", "٣", "٣h", "\uff15"),
        *("1h-30m", "4h\x00", "--1"),
        *(math.nan, math.inf, -math.inf, -1, -0.5, 10**400, True, None, [], {}),
    ],
)  # fmt: skip
def test_what_is_not_a_quantity_is_a_unit_error(parse: Parse, value: str | float) -> None:
    with pytest.raises(UnitError) as caught:
        parse(value)

    assert caught.value.expected in str(caught.value)


@pytest.mark.parametrize("parse", [read for read in READERS if read is not units.parse_fraction])
@pytest.mark.parametrize("value", ["0", 0, 0.0, "0.0", "1e-400"])
def test_zero_is_not_a_positive_quantity(parse: Parse, value: str | float) -> None:
    with pytest.raises(UnitError, match="such as"):
        parse(value)


@pytest.mark.parametrize("value", ["101%", 1.01, "-1%"])
def test_a_fraction_lies_between_zero_and_one(value: str | float) -> None:
    with pytest.raises(UnitError, match="a fraction"):
        units.parse_fraction(value)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_duration_s, "4 GB"),
        (units.parse_bytes, "4 h"),
        (units.parse_bytes, "4 gb"),  # gigabit or gigabyte: not ours to guess
        (units.parse_mbps, "4 GB"),
        (units.parse_usd, "4 EUR"),
        (units.parse_count, "4%"),
        (units.parse_flops, "4 GB"),
    ],
)
def test_a_unit_of_another_kind_is_refused(parse: Parse, text: str) -> None:
    with pytest.raises(UnitError, match="cannot read '4"):
        parse(text)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_bare_number_is_read_as_itself(number: float) -> None:
    assert units.parse_duration_s(number) == units.parse_duration_s(repr(number)) == number


@given(st.integers(min_value=1, max_value=10**15))
def test_thousands_may_be_set_apart(number: int) -> None:
    assert units.parse_count(f"{number:,}") == units.parse_count(f"{number:_}") == float(number)


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_a_printed_duration_reads_back_to_its_printed_digits(seconds: float) -> None:
    assert units.parse_duration_s(units.format_duration(seconds)) == pytest.approx(
        seconds, rel=0.03
    )


@given(st.floats(min_value=1.0, max_value=1e16))
def test_printed_bytes_read_back_to_their_printed_digits(size: float) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == pytest.approx(size, rel=5e-4, abs=0.5)


@given(st.floats(min_value=0.01, max_value=1e12))
def test_printed_dollars_read_back_to_the_printed_cent(amount: float) -> None:
    assert units.parse_usd(units.format_usd(amount)) == pytest.approx(amount, abs=0.006)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0021, "2.1 ms"), (59, "59 s"), (150, "2.5 min"), (14_400, "4.0 h"), (604_800, "7.0 d")],
)
def test_a_duration_is_shown_in_the_unit_a_person_would_use(seconds: float, shown: str) -> None:
    assert units.format_duration(seconds) == shown


@pytest.mark.parametrize("parse", READERS)
@given(text=st.text())
def test_any_text_is_a_finite_quantity_or_a_unit_error(parse: Parse, text: str) -> None:
    try:
        found = parse(text)
    except UnitError:
        return
    assert math.isfinite(found)
    assert found >= 0
