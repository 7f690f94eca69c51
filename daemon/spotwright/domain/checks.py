"""Checks that values make of themselves at construction; a figure that is None is not given."""

from collections.abc import Callable


def require_positive(value: object, *names: str) -> None:
    """Raise ValueError unless every named figure that is given is positive."""
    _require(value, names, lambda figure: figure > 0, "positive")


def require_not_negative(value: object, *names: str) -> None:
    """Raise ValueError unless every named figure that is given is zero or more."""
    _require(value, names, lambda figure: figure >= 0, "zero or more")


def require_fraction(value: object, *names: str) -> None:
    """Raise ValueError unless every named figure that is given lies between 0 and 1."""
    _require(value, names, lambda figure: 0 <= figure <= 1, "between 0 and 1")


def _require(
    value: object, names: tuple[str, ...], holds: Callable[[float], bool], words: str
) -> None:
    for name in names:
        figure = getattr(value, name)
        if figure is not None and not holds(figure):
            raise ValueError(f"{name} must be {words}, got {figure}")
