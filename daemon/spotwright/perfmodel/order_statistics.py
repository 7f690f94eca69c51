"""The slowest of many: what a synchronous step waits for."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]


def expected_maximum(count: Floats) -> Floats:
    """Return the expected maximum of `count` standard normals (Blom's approximation; 0 for one)."""
    maximum: Floats = ndtri((count - 0.375) / (count + 0.25))
    return maximum


def smooth_maximum(a: Floats, b: Floats, power: Floats | float) -> Floats:
    """Return (a^p + b^p)^(1/p): the larger of the two, rounded off where they are close."""
    larger, smaller = np.maximum(a, b), np.minimum(a, b)
    share = smaller / np.where(larger > 0, larger, 1.0)
    smooth: Floats = larger * (1 + share**power) ** (1 / power)
    return smooth
