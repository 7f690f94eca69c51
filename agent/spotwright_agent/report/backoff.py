"""How long to wait before the daemon is tried again."""

import random

FIRST_S, LONGEST_S = 0.5, 30.0
REPLACED_S = (30.0, 60.0)  # two agents with one name must not throw each other out all the time
_LONGEST_ASKED_S = 300.0


class Backoff:
    """Doubles from half a second to half a minute, each time with jitter."""

    def __init__(self, draw: random.Random | None = None) -> None:
        self._draw = draw or random.SystemRandom()
        self._next_s = FIRST_S

    def reset(self) -> None:
        """Begin anew, after something good."""
        self._next_s = FIRST_S

    def after_failure_s(self, *, asked_s: float = 0.0) -> float:
        """Return how long to wait now; no less than the daemon asked for, within reason."""
        wait_s = self._draw.uniform(self._next_s / 2, self._next_s)
        self._next_s = min(2 * self._next_s, LONGEST_S)
        return max(wait_s, min(asked_s, _LONGEST_ASKED_S) * self._draw.uniform(1.0, 1.25))

    def after_replacement_s(self) -> float:
        """Return how long to wait where another agent has the same name."""
        return self._draw.uniform(*REPLACED_S)
