"""Network bandwidth of an instance type.

EC2 states a bandwidth for the whole instance ("400 Gigabit", "4x 100 Gigabit", "Up to 10 Gigabit")
and a baseline and a peak for each card. The cards of some types share what each lists: those of
g6e.48xlarge add up to four times its 400 Gbps, and those of p6-b200.48xlarge, without EFA, to
half of its 3200 Gbps. So the statement counts where it is one figure, and the figures of a single
card where the statement is a burst or a mere word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import NetworkInfoTypeDef

_MBPS_PER_GBPS = 1000
_STATED = re.compile(r"(?:(?P<cards>\d+)x )?(?P<gbps>[\d.]+) Gigabit")


def bandwidth_mbps(network: NetworkInfoTypeDef) -> tuple[float | None, float | None]:
    """Return the baseline and the peak; None where AWS does not tell."""
    stated = _STATED.fullmatch(network.get("NetworkPerformance", ""))
    if stated:
        whole = _mbps(int(stated["cards"] or 1) * float(stated["gbps"]))
        return whole, whole
    cards = network.get("NetworkCards", [])
    if len(cards) != 1:
        return None, None
    figures = cards[0].get("BaselineBandwidthInGbps"), cards[0].get("PeakBandwidthInGbps")
    return _mbps(figures[0]), _mbps(figures[1])


def _mbps(gbps: float | None) -> float | None:
    return None if gbps is None else round(gbps * _MBPS_PER_GBPS, 3)


def efa_interface_count(network: NetworkInfoTypeDef) -> int:
    """Return how many EFA interfaces the type takes; 0 without EFA."""
    if not network.get("EfaSupported", False):
        return 0
    return network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 1)
