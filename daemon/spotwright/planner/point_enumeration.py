"""All whole fleets that a relaxation leaves, when they are few.

A linear bound c . x >= bound + sum_i |r_i| * (steps of x_i away from where r_i wants it) rules out
every fleet whose steps cost more than the slack -bound. Fleets are built up column by column,
dearest steps first, as long as they can still get to the number of nodes asked for.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_OPTIMISM = 0.5  # in logarithms: the guess of how many fleets there are is often too high


@dataclass(frozen=True, slots=True)
class Moves:
    """Fleets near one fleet."""

    home: Floats
    moving: NDArray[np.intp]  # pools whose counts differ
    steps: Floats  # by how many nodes, (moving pools, fleets)

    def fleets(self) -> Floats:
        """Return the fleets whole, (pools, fleets)."""
        whole = np.repeat(self.home[:, None], self.steps.shape[1], axis=1)
        whole[self.moving] += self.steps
        return whole


@dataclass(frozen=True, slots=True)
class Reach:
    """How far each column can be from where its reduced cost wants it."""

    home: Floats
    price: Floats  # of a step away
    direction: Floats
    steps: Floats  # at most

    @property
    def lower(self) -> Floats:
        """Least nodes of each column."""
        return np.where(self.direction > 0, self.home, self.home - self.steps)

    @property
    def upper(self) -> Floats:
        """Most nodes of each column."""
        return np.where(self.direction > 0, self.home + self.steps, self.home)


def reach(reduced: Floats, slack: float, *, lower: Floats, upper: Floats) -> Reach:
    """Return the nodes of each column that a slack leaves.

    Args:
        reduced: reduced cost of one node of each column.
        slack: how much all steps together may cost.
        lower: least nodes of each column.
        upper: most nodes of each column.
    """
    return Reach(
        home=np.where(reduced > 0, lower, upper),
        price=np.abs(reduced),
        direction=np.where(reduced > 0, 1.0, -1.0),
        steps=np.minimum(upper - lower, _steps(np.abs(reduced), slack)),
    )


def enumerate_fleets(
    near: Reach, slack: float, *, node_range: tuple[int, int], most_counts: int
) -> Moves | None:
    """Return every fleet within the slack; None: more than it pays to evaluate.

    Args:
        near: what the slack leaves of each column.
        slack: how much all steps together may cost.
        node_range: least and most nodes of a fleet.
        most_counts: fleets, times the columns they use, beyond which it does not pay.
    """
    home, price, direction, left = near.home, near.price, near.direction, near.steps
    most = most_counts // max(1, int(((home > 0) | (left > 0)).sum()))
    if not _is_small(left, most):
        return None
    low_n, high_n = node_range
    moving = np.flatnonzero(left > 0)
    moving = moving[np.argsort(-price[moving], kind="stable")]
    # what the columns not yet placed can still add or take away
    gains = np.where(direction > 0, left, 0.0)[moving]
    losses = np.where(direction < 0, left, 0.0)[moving]
    gain_left = np.append(np.cumsum(gains[::-1])[::-1], 0.0)
    loss_left = np.append(np.cumsum(losses[::-1])[::-1], 0.0)
    steps = np.zeros((0, 1))
    nodes, spent = np.array([home.sum()]), np.zeros(1)
    for k, i in enumerate(moving):
        options = np.arange(left[i] + 1)
        nodes_next = (nodes[:, None] + direction[i] * options).ravel()
        spent_next = (spent[:, None] + price[i] * options).ravel()
        kept = np.flatnonzero(
            (spent_next <= slack + _TOLERANCE * max(1.0, slack))
            & (nodes_next + gain_left[k + 1] >= low_n - 0.5)
            & (nodes_next - loss_left[k + 1] <= high_n + 0.5)
        )
        if len(kept) > most:
            return None
        before, chosen = np.divmod(kept, len(options))
        steps = np.vstack((steps[:, before], chosen))
        nodes, spent = nodes_next[kept], spent_next[kept]
    inside = (nodes >= low_n - 0.5) & (nodes <= high_n + 0.5)
    return Moves(home, moving, direction[moving, None] * steps[:, inside])


def _steps(price: Floats, slack: float) -> Floats:
    """Return how many steps of each column alone the slack allows."""
    with np.errstate(divide="ignore"):
        return np.floor(
            np.where(price > 0, (slack * (1 + _TOLERANCE) + _TOLERANCE) / price, np.inf)
        )


def _is_small(left: Floats, most: int) -> bool:
    """Guess, from the volume of the simplex that the slack leaves, whether it is worth a try."""
    steps = np.sort(left[left > 0])[::-1]
    dimension = np.arange(1, len(steps) + 1)
    log_volume = float(np.log((steps + dimension) / dimension).sum())
    return log_volume <= math.log(max(most, 1)) + _OPTIMISM
