"""Single values and records of a snapshot file, checked as they are read."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from spotwright.domain.hardware import Cloud, Gpu, InstanceType

_NOT_FACTS = {"name", "cloud"}  # said once, by the key of the record and by the file
_Record = TypeVar("_Record")
_Readers = Mapping[str, Callable[[object], object]]


def facts(record: Gpu | InstanceType) -> dict[str, object]:
    """Return what has to be written of a record: each fact that is not its default."""
    return {
        field.name: _short(getattr(record, field.name))
        for field in dataclasses.fields(record)
        if field.name not in _NOT_FACTS and getattr(record, field.name) != field.default
    }


def gpu(name: str, found: object) -> Gpu:
    """Read one entry of the gpus section."""
    return _record(Gpu, name, found, readers=_GPU_READERS, given={})


def instance_type(name: str, found: object, *, cloud: Cloud) -> InstanceType:
    """Read one entry of the instance_types section."""
    return _record(InstanceType, name, found, readers=_TYPE_READERS, given={"cloud": cloud})


def mapping(value: object, what: str) -> Mapping[str, object]:
    """Check that a value is a JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")
    return value


def cells(row: object, *, count: int, section: str) -> list[object]:
    """Check that a row is a list of `count` cells."""
    if not isinstance(row, list) or len(row) != count:
        raise ValueError(f"{section}: {row!r} is not a row of {count}")
    return row


def text(value: object) -> str:
    """Check that a value is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a text")
    return value


def time(value: object) -> datetime:
    """Check that a value is a time with a time zone."""
    found = datetime.fromisoformat(text(value))
    if found.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return found.astimezone(UTC)


def number(value: object) -> float:
    """Check that a value is a finite number, zero or more."""
    if type(value) not in (float, int) or not 0 <= value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{value!r} is not a number from 0 up")
    return float(value)  # type: ignore[arg-type]


def price(value: object) -> float | None:
    """Check that a value is a positive price, or null."""
    if value is None:
        return None
    found = number(value)
    if found == 0:
        raise ValueError("a price of 0 is not a price; write null where there is no offer")
    return found


def whole(value: object) -> int:
    """Check that a value is a whole number, zero or more."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number from 0 up")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _optional(read: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else read(value)


_READ_BY_TYPE: Mapping[object, Callable[[object], object]] = {
    str: text,
    float: number,
    int: whole,
    bool: _flag,
    str | None: _optional(text),
    float | None: _optional(number),
}


def _readers(kind: type[Gpu] | type[InstanceType]) -> _Readers:
    fields = [field for field in dataclasses.fields(kind) if field.name not in _NOT_FACTS]
    return {field.name: _READ_BY_TYPE[field.type] for field in fields}


_GPU_READERS = _readers(Gpu)
_TYPE_READERS = _readers(InstanceType)


def _record(
    kind: Callable[..., _Record],
    name: str,
    found: object,
    *,
    readers: _Readers,
    given: Mapping[str, object],
) -> _Record:
    values: dict[str, object] = {"name": text(name), **given}
    try:
        for key, value in mapping(found, "the record").items():
            values[key] = readers[key](value)
        return kind(**values)
    except KeyError as unknown:
        raise ValueError(f"{name}: {unknown} is not a known fact") from unknown
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{name}: {problem}") from problem


def _short(value: object) -> object:
    """Write 48.0 as 48: shorter, and equal when read back."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
