"""Which AWS vCPU quota an instance type counts against.

AWS limits running vCPUs per region, by group of instance families and by market. Sources:
"Amazon EC2 instance type quotas" and "Spot Instance quotas" in the EC2 user guide.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from spotwright.domain.offer import Market

STANDARD = "standard"
_CLASS_BY_FAMILY_LETTERS = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), STANDARD),
    **dict.fromkeys(("g", "gr", "vt"), "g-vt"),
    "p": "p",
    "inf": "inf",
    "trn": "trn",
    "dl": "dl",
    "f": "f",
    "x": "x",
}
_FIRST_GENERATION_OF_P5_QUOTA = 5  # AWS names only P5; P6 is counted with it, its only spot P quota

# Classes with the same code in a market share one quota: group limits by code, not by class.
QUOTA_CODES: Mapping[tuple[str, Market], str] = MappingProxyType(
    {
        (STANDARD, Market.ON_DEMAND): "L-1216C47A",
        ("g-vt", Market.ON_DEMAND): "L-DB2E81BA",
        ("p", Market.ON_DEMAND): "L-417A185B",
        ("p5", Market.ON_DEMAND): "L-417A185B",  # on demand there is one quota for all of P
        ("inf", Market.ON_DEMAND): "L-1945791B",
        ("trn", Market.ON_DEMAND): "L-2C3B7624",
        ("dl", Market.ON_DEMAND): "L-6E869C2A",
        ("f", Market.ON_DEMAND): "L-74FC7D96",
        ("x", Market.ON_DEMAND): "L-7295265B",
        (STANDARD, Market.SPOT): "L-34B43A08",
        ("g-vt", Market.SPOT): "L-3819A6DF",
        ("p", Market.SPOT): "L-7212CCBC",  # P4, P3 and P2
        ("p5", Market.SPOT): "L-C4BD4855",
        ("inf", Market.SPOT): "L-B5D1601B",
        ("trn", Market.SPOT): "L-6B0D517C",
        ("dl", Market.SPOT): "L-85EED4F7",
        ("f", Market.SPOT): "L-88CF9481",
        ("x", Market.SPOT): "L-E3A00192",
    }
)

QUOTA_CLASSES = frozenset(quota_class for quota_class, _ in QUOTA_CODES)

_AWS_NAME = re.compile(r"(?P<letters>[a-z]+)(?P<generation>\d+)[^.]*\..+")


def quota_class(instance_type_name: str) -> str | None:
    """Return the quota class of an AWS type, or None for families without one (u, hpc, mac)."""
    name = _AWS_NAME.fullmatch(instance_type_name)
    if name is None:
        return None
    found = _CLASS_BY_FAMILY_LETTERS.get(name["letters"])
    if found == "p" and int(name["generation"]) >= _FIRST_GENERATION_OF_P5_QUOTA:
        return "p5"
    return found
