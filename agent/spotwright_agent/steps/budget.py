"""How many lines of each user are read in a second."""

MAX_LINES_PER_S = 10_000


class LineBudget:
    """Lets a user take as many lines as remain for the others: half of all, if he is alone."""

    def __init__(self) -> None:
        self._second, self._left = 0, MAX_LINES_PER_S
        self._taken: dict[int, int] = {}

    def take(self, uid: int, wanted: int, *, now_s: float) -> int:
        """Return how many lines of a user may be read now, `wanted` at most."""
        if int(now_s) != self._second:
            self._second, self._left = int(now_s), MAX_LINES_PER_S
            self._taken.clear()
        taken = self._taken.get(uid, 0)
        granted = max(0, min(wanted, (self._left - taken + 1) // 2))
        self._left -= granted
        self._taken[uid] = taken + granted
        return granted
