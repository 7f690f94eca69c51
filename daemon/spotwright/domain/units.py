"""Quantities as people write them, to and from the units the code uses.

Bytes and bit rates are decimal (11.5 MB = 11.5e6 bytes, 10 Gbit/s = 10,000 Mbit/s); GiB and MiB
are binary, as everywhere in computing but in marketing.
"""

import math
import re
from decimal import Context, Decimal

from spotwright.domain.errors import UnitError

# A comma stands between thousands and nowhere else: `1,5 h` must not be read as fifteen hours.
_WHOLE = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*)"
_NUMBER = rf"(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_EXACT = Context(prec=50, traps=[])  # 95% is 0.95, not 95 * 0.01; too large becomes infinite
_QUANTITY = re.compile(rf"\s*([+-]?{_NUMBER})\s*([A-Za-z/µ%]*)\s*")
_DURATION_PART = re.compile(rf"\s*{_NUMBER}\s*[A-Za-zµ]+\s*")
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0,
            "seconds": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
            "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0,
            "days": 86400.0}  # fmt: skip
_BYTES = {"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
_MBPS = {"kbit/s": 1e-3, "Mbit/s": 1.0, "Gbit/s": 1e3, "Mbps": 1.0, "Gbps": 1e3,
         "kB/s": 8e-3, "MB/s": 8.0, "GB/s": 8e3, "MiB/s": 8.388608}  # fmt: skip
_COUNTS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_FLOPS = {"": 1.0, "FLOP": 1.0, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12, "PFLOP": 1e15}


def parse_duration_s(value: str | float) -> float:
    """Read `4h`, `90 min`, `1h30m` or a bare number of seconds; always positive."""
    if isinstance(value, str) and not _is_number(value):
        parts = _DURATION_PART.findall(value)
        if not parts or "".join(parts) != value:
            raise UnitError(value, expected="a positive duration such as 90s, 45 min, 4h or 2d")
        seconds = sum(_quantity(part, _SECONDS, "a duration such as 4h") for part in parts)
    else:
        seconds = _quantity(value, {"": 1.0}, "a duration such as 4h")
    return _positive(seconds, value, "a positive duration such as 4h")


def parse_bytes(value: str | float) -> float:
    """Read `11.5 MB`, `2 GiB` or a bare number of bytes."""
    expected = "a size such as 11.5 MB or 2 GiB"
    return _positive(_quantity(value, {"": 1} | _BYTES, expected), value, expected)


def parse_gib(value: str | float) -> float:
    """Read a memory size; a bare number is GiB already."""
    expected = "a memory size such as 24 GiB"
    return _positive(_quantity(value, {"": 2**30} | _BYTES, expected), value, expected) / 2**30


def parse_mbps(value: str | float) -> float:
    """Read `10 Gbit/s` or `1.2 GB/s` as 10^6 bit/s; a bare number is Mbit/s already."""
    expected = "a rate such as 10 Gbit/s or 1.2 GB/s"
    return _positive(_quantity(value, {"": 1.0} | _MBPS, expected), value, expected)


def parse_usd(value: str | float) -> float:
    """Read `$20`, `20 USD` or a bare number of dollars."""
    text = value.strip().removeprefix("$") if isinstance(value, str) else value
    expected = "an amount such as $20"
    return _positive(_quantity(text, {"": 1.0, "USD": 1.0, "usd": 1.0}, expected), value, expected)


def parse_count(value: str | float) -> float:
    """Read `128`, `1.2M` or `5e9`."""
    expected = "a positive count such as 128 or 1.2M"
    return _positive(_quantity(value, _COUNTS, expected), value, expected)


def parse_flops(value: str | float) -> float:
    """Read `12.3 GFLOP` or a bare number of floating-point operations."""
    expected = "an amount of work such as 12.3 GFLOP"
    return _positive(_quantity(value, _FLOPS, expected), value, expected)


def parse_fraction(value: str | float) -> float:
    """Read `95%` or `0.95` as a fraction between 0 and 1."""
    fraction = _quantity(value, {"": 1.0, "%": 0.01}, "a fraction such as 0.95 or 95%")
    if not 0 <= fraction <= 1:
        raise UnitError(value, expected="a fraction between 0 and 1, such as 0.95 or 95%")
    return fraction


def format_duration(seconds: float) -> str:
    """Print seconds the way `parse_duration_s` reads them, to two significant units."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = seconds / 60
    if minutes < 120:
        return f"{minutes:.1f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 72 else f"{hours / 24:.1f} d"


def format_usd(amount: float) -> str:
    """Print dollars with as many decimals as a bill of that size needs."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def format_bytes(size: float) -> str:
    """Print bytes with a decimal unit."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size:.0f} B"


def _quantity(value: str | float, units: dict[str, float], expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(value, expected=expected)
    match = _QUANTITY.fullmatch(str(value))
    if match is None or match[2] not in units:
        raise UnitError(value, expected=expected)
    number = _EXACT.create_decimal(match[1].replace(",", "").replace("_", ""))
    return float(_EXACT.multiply(number, Decimal(str(units[match[2]]))))


def _positive(number: float, value: object, expected: str) -> float:
    if not (math.isfinite(number) and number > 0):
        raise UnitError(value, expected=expected)
    return number


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
