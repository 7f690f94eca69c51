"""Figures that only make sense when they are positive."""

from spotwright.domain.errors import CannotFitError


def check_positive(law: str, **values: float) -> None:
    """Raise CannotFitError unless every figure of a row is a positive finite number."""
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise CannotFitError(
                law,
                f"{name} is {value:g} in one row",
                way_out="every figure must be positive and finite: correct or drop the row",
            )
