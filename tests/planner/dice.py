"""Draws from a seed."""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """A seeded generator that says what is drawn."""

    def __init__(self, *seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def chance(self, fraction: float) -> bool:
        return bool(self._random.random() < fraction)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random.integers(len(options)))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """Return so many different ones, in the order given."""
        chosen = self._random.permutation(len(options))[:count]
        return [options[i] for i in sorted(chosen.tolist())]

    def whole(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        return int(self._random.integers(low, high + 1))

    def between(self, low: float, high: float) -> float:
        return float(self._random.uniform(low, high))

    def scale(self, low: float, high: float) -> float:
        """Return a number between two, evenly over orders of magnitude."""
        return math.exp(self.between(math.log(low), math.log(high)))
