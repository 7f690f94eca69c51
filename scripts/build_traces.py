"""Make the bundled availability campaigns: `python scripts/build_traces.py --data DIR`."""

import argparse
from pathlib import Path

from spotwright.adapters.traces.bundled import BUNDLED, bundled_bytes
from spotwright.adapters.traces.csv_campaigns import read_csv_campaigns
from spotwright.simulator.campaign import CampaignKind

SOURCES = (
    "skypilot-org/spot-traces, commit 221da1ab9bdfe7966da296265d7694d52dc0c5a6 (2024-03-31): "
    "availability of V100 and K80 spot instances on AWS, 2022-10 to 2023-09, published with "
    "'Can't Be Late' (NSDI 2024); change points only",
)


def main() -> None:
    """Write the file anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with spot_traces.csv.gz")
    options = parser.parse_args()
    found = read_csv_campaigns(options.data / "spot_traces.csv.gz")
    kept = [campaign for campaign in found if campaign.kind is CampaignKind.AVAILABILITY]
    BUNDLED.parent.mkdir(exist_ok=True)
    BUNDLED.write_bytes(bundled_bytes(kept, SOURCES))
    print(f"{BUNDLED}: {len(kept)} series, {BUNDLED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
