"""Human quantities, times and pools as pydantic field types; their JSON Schema says the form."""

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from spotwright.domain import units
from spotwright.domain.errors import BadInputError, UnitError
from spotwright.domain.offer import POOL_PATTERN, Pool

_ZERO = re.compile(r"0+(\.0*)?\s*(us|µs|ms|s|min|h|d)?")
_LARGEST = 1e24  # products of larger figures leave the range in which they can be computed


def _reads(parse: Callable[[Any], object]) -> BeforeValidator:
    def validate(value: Any) -> object:
        try:
            figure = parse(value)
        except BadInputError as error:
            raise ValueError(str(error)) from None
        if isinstance(figure, float | int) and abs(figure) > _LARGEST:
            raise ValueError(f"{value!r} is more than {_LARGEST:g}, which nothing real comes to")
        return figure

    return BeforeValidator(validate)


def _whole(value: Any) -> float:
    count = units.parse_count(value)
    if count != int(count):
        raise UnitError(value, expected="a whole number such as 128 or 1.2M")
    return int(count)


def _or_zero(parse: Callable[[Any], float]) -> Callable[[Any], float]:
    """Let zero through, with or without a unit, where it means something."""

    def read(value: Any) -> float:
        return 0 if _ZERO.fullmatch(str(value).strip()) else parse(value)

    return read


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UnitError(value, expected="a number") from None
    if not math.isfinite(number):
        raise UnitError(value, expected="a finite number")
    return number


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise UnitError(value, expected="a time such as 2026-11-16T12:00:00Z") from None
    if time.utcoffset() is None:
        raise BadInputError(f"{value!r} has no timezone; for UTC write {time.isoformat()}Z")
    return time


def _written_as(description: str, *examples: str | float) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": ["string", "number"], "description": description, "examples": list(examples)}
    )


Duration = Annotated[float, _reads(units.parse_duration_s), _written_as("a duration", "4h", "90s")]
DurationOrZero = Annotated[
    float, _reads(_or_zero(units.parse_duration_s)), _written_as("a duration, or 0", "2 min", 0)
]
Bytes = Annotated[float, _reads(units.parse_bytes), _written_as("a size", "11.5 MB", "2 GiB")]
Rate = Annotated[float, _reads(units.parse_mbps), _written_as("a rate", "10 Gbit/s", "1.2 GB/s")]
Usd = Annotated[float, _reads(units.parse_usd), _written_as("an amount of money", "$20", 20)]
Flops = Annotated[float, _reads(units.parse_flops), _written_as("operations", "12.3 GFLOP")]
Amount = Annotated[float, _reads(units.parse_count), _written_as("a positive number", 128, "1.2M")]
Count = Annotated[int, _reads(_whole), _written_as("a whole number", 128, "1.2M")]
Quota = Annotated[int, _reads(_or_zero(_whole)), _written_as("a whole number, or 0", 0, 256)]
Fraction = Annotated[float, _reads(units.parse_fraction), _written_as("a fraction", 0.95, "95%")]
Number = Annotated[float, _reads(_number), _written_as("a number", -0.2, "1e-3")]
Time = Annotated[
    datetime,
    _reads(_time),
    WithJsonSchema({"type": "string", "description": "a time with its timezone",
                    "format": "date-time", "examples": ["2026-11-16T12:00:00Z"]}),
]  # fmt: skip
PoolName = Annotated[
    Pool,
    _reads(lambda value: Pool.parse(str(value))),
    WithJsonSchema({"type": "string", "description": "TYPE@ZONE/MARKET",
                    "pattern": f"^{POOL_PATTERN}$", "examples": ["g5.xlarge@use1-az4/spot"]}),
]  # fmt: skip
