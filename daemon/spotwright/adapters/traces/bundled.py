"""The availability campaigns that ship with the program, in a format of their own.

Gzipped JSON: `format`, `sources`, and for each campaign its facts with `gap_s` (one sample),
`steps` (samples from change to change, the first from the start), `values` and `end_s`.
"""

import gzip
import json
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import gcd
from pathlib import Path
from typing import Any

from spotwright.simulator.campaign import Campaign, CampaignKind
from spotwright.simulator.series import Series

BUNDLED = Path(__file__).with_name("data") / "campaigns.json.gz"
_FORMAT = 1


def bundled_campaigns(path: Path = BUNDLED) -> list[Campaign]:
    """Return the campaigns of a bundled file."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    if document["format"] != _FORMAT:
        raise ValueError(f"{path} has format {document['format']}, this program reads {_FORMAT}")
    return [_campaign(entry) for entry in document["campaigns"]]


def bundled_bytes(campaigns: Sequence[Campaign], sources: Sequence[str]) -> bytes:
    """Return campaigns as a bundled file holds them; the same ones give the same bytes."""
    document = {
        "format": _FORMAT,
        "sources": list(sources),
        "campaigns": [_entry(campaign) for campaign in campaigns],
    }
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), mtime=0)


def _campaign(entry: dict[str, Any]) -> Campaign:
    times = [step * entry["gap_s"] for step in accumulate(entry["steps"], initial=0)]
    return Campaign(
        name=entry["name"],
        source=entry["source"],
        kind=CampaignKind(entry["kind"]),
        zone=entry["zone"],
        instance_type=entry["instance_type"],
        target_nodes=entry["target_nodes"],
        nodes=Series(
            tuple(float(t) for t in times), tuple(float(v) for v in entry["values"]), entry["end_s"]
        ),
    )


def _entry(campaign: Campaign) -> dict[str, Any]:
    times, gap_s = campaign.nodes.times_s, _gap_s(campaign.nodes)
    steps = [round((b - a) / gap_s) for a, b in pairwise(times)]
    return {
        "name": campaign.name,
        "source": campaign.source,
        "kind": campaign.kind,
        "zone": campaign.zone,
        "instance_type": campaign.instance_type,
        "target_nodes": campaign.target_nodes,
        "gap_s": gap_s,
        "steps": steps,
        "values": [int(value) for value in campaign.nodes.values],
        "end_s": campaign.nodes.end_s,
    }


def _gap_s(series: Series) -> float:
    """Return the longest time of which all changes are multiples."""
    return float(gcd(*(round(t) for t in series.times_s[1:])) or 1)
