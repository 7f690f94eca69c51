"""Asking before money is spent or machines go away."""

import signal
import sys

from spotwright.domain.errors import BadInputError, DeclinedError


def ask_approval(question: str) -> None:
    """Go on only if the user types yes.

    Raises:
        DeclinedError: the answer was anything else, or Ctrl-C.
        BadInputError: there is nobody to ask.
    """
    answer: str | None = None
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(f"{question} Only `yes` is taken for yes: ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline() if sys.stdin is not None else ""
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, usual)
    if not answer:
        print(file=sys.stderr)  # what follows starts on a line of its own
    if answer == "":
        raise BadInputError("nobody answered; --auto-approve asks nobody")
    if answer is None or answer.strip() != "yes":
        raise DeclinedError("nothing was changed")
