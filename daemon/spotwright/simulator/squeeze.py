"""Deflation: a pool that runs short cuts nodes down instead of taking them away.

With n nodes of a pool and room for c < n, shares s_i of their speed are left so that they add up to
c (HPDC 2020, EuroSys 2019):

    proportional   s_i = c / n
    priority       1 - s_i proportional to i: who came first is cut least
    deterministic  the last ones go to the floor, one after another, until the rest fits

A node whose share would fall below the floor is taken: the pool then has one less to share among.
"""

from spotwright.simulator.conditions import Squeeze


def squeezed_shares(count: int, room: float, *, rule: Squeeze, floor: float) -> list[float]:
    """Return the shares of the nodes that stay, who came first first."""
    for staying in range(count, 0, -1):
        if room >= staying:
            return [1.0] * staying
        shares = _shares(staying, room, rule=rule, floor=floor)
        if min(shares) >= floor - 1e-9:
            return shares
    return []


def _shares(count: int, room: float, *, rule: Squeeze, floor: float) -> list[float]:
    excess = count - room
    if rule is Squeeze.PROPORTIONAL:
        return [room / count] * count
    if rule is Squeeze.PRIORITY:
        weights = range(1, count + 1)
        return [1 - excess * weight / sum(weights) for weight in weights]
    shares = [1.0] * count
    for place in reversed(range(count)):
        cut = min(1 - floor, excess)
        shares[place] -= cut
        excess -= cut
    return shares if excess <= 1e-9 else [0.0] * count
