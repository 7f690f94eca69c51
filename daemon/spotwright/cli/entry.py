"""The `spotwright` command: start the application, turn errors into exit codes.

0 done, 1 failed, 2 bad usage or bad input, 3 no feasible fleet. Kept free of every import that an
install without extras lacks, so that it can say which one is missing.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from spotwright.cli.extras import needs_extra
from spotwright.cli.terminal import complete_output
from spotwright.domain.errors import BadInputError, NoFeasibleFleetError, SpotwrightError

_EXIT_CODES = {BadInputError: 2, NoFeasibleFleetError: 3}


def main() -> None:
    """Run the command line; never return."""
    # gRPC's own lines say in its words what an error of ours says in a user's.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    try:
        with complete_output():
            _application()()
    except SpotwrightError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(exit_code(error))


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """End at once: an exception would be lost in imports of compiled modules."""
    # On a terminal the cursor is behind ^C, or behind the line of a search.
    os.write(2, b"\nerror: interrupted\n" if os.isatty(2) else b"error: interrupted\n")
    os._exit(1)


def exit_code(error: SpotwrightError) -> int:
    """Return the exit code that an error stands for."""
    return next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), 1)


def _application() -> Callable[[], None]:
    with needs_extra("plan", "the command line"):
        from spotwright.cli.app import app  # noqa: PLC0415
    return app
