"""What a simulated job asks of whoever steers it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from spotwright.domain.offer import Pool
from spotwright.domain.steering import JobView


@dataclass(frozen=True, slots=True)
class Wish:
    """The workers to have, and when to be asked again if nothing happens before."""

    workers: Mapping[Pool, int]
    until_s: float = math.inf
    ends: bool = False  # nothing more is rented: the job is over
    saves_on_notice: bool = True  # training is told to save its state


class Policy(Protocol):
    """Decides for one job; it may remember."""

    @property
    def watches(self) -> frozenset[Pool]:
        """Pools that it asks for capacity all the time, where not all are known."""

    def decide(self, view: JobView, /) -> Wish:
        """Return what is wanted from now on; called whenever something has happened."""
