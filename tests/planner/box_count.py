class BoxCount:
    """Ends a search that takes too many boxes: slow machines must not decide what passes."""

    def __init__(self, most: int) -> None:
        self._left = most

    def stopped(self) -> bool:
        self._left -= 1
        return self._left < 0
