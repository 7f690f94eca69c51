"""What keeps a law from being fitted."""

from spotwright.domain.errors import BadInputError


class CannotFitError(BadInputError):
    """The rows given do not determine the law asked for."""

    reason = "CANNOT_FIT"

    def __init__(self, law: str, problem: str, *, way_out: str) -> None:
        super().__init__(f"cannot fit the {law} law: {problem}; {way_out}")
        self.law, self.problem, self.way_out = law, problem, way_out


def check_positive(law: str, **values: float) -> None:
    """Raise CannotFitError unless every figure of a row is a positive finite number."""
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise CannotFitError(
                law,
                f"{name} is {value:g} in one row",
                way_out="every figure must be positive and finite: correct or drop the row",
            )
