"""The `spotwright` command: start the application, turn errors into exit codes.

0 done, 1 failed, 2 bad usage or bad input, 3 no feasible fleet. Kept free of every import that an
install without extras lacks, so that it can say which one is missing.
"""

import sys
from collections.abc import Callable

from spotwright.domain.errors import (
    BadInputError,
    MissingExtraError,
    NoFeasibleFleetError,
    SpotwrightError,
)

_EXIT_CODES = {BadInputError: 2, NoFeasibleFleetError: 3}


def main() -> None:
    """Run the command line; never return."""
    try:
        _application()()
    except SpotwrightError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(exit_code(error))


def exit_code(error: SpotwrightError) -> int:
    """Return the exit code that an error stands for."""
    return next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), 1)


def _application() -> Callable[[], None]:
    try:
        from spotwright.cli.app import app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "click", "rich"}:
            raise
        raise MissingExtraError("the command line", extra="plan") from error
    return app
