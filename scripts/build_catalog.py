"""Write the bundled catalog snapshots from the collected price and hardware tables.

    python scripts/build_catalog.py --data ../shared/data

The same tables give the same bytes, so a changed snapshot in review is a changed fact.
"""

import argparse
import sys
from pathlib import Path

import aws_snapshot
import azure_snapshot
import gcp_snapshot

from spotwright.adapters.catalog.snapshot_file import bundled_path, write_snapshot
from spotwright.domain.catalog import Snapshot
from spotwright.domain.hardware import Cloud


def main() -> None:
    """Build all three snapshots and say how large they are."""
    args = _arguments()
    if not (args.data / "aws_gpu_offers.csv.gz").is_file():
        sys.exit(f"no collected tables in {args.data}: pass --data FOLDER (make: DATA=FOLDER)")
    for build in (aws_snapshot.build, gcp_snapshot.build, azure_snapshot.build):
        snapshot = build(args.data)
        path = args.out / f"{snapshot.cloud}.json"
        write_snapshot(path, snapshot)
        sys.stderr.write(_summary(snapshot, path) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write the bundled catalog snapshots.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the collected tables")
    parser.add_argument("--out", type=Path, default=bundled_path(Cloud.AWS).parent)
    return parser.parse_args()


def _summary(snapshot: Snapshot, path: Path) -> str:
    zones = len({price.zone for price in snapshot.prices})
    return (
        f"{path.name}: {len(snapshot.instance_types)} types, {len(snapshot.prices)} prices in "
        f"{zones} zones, {len(snapshot.interruption_fraction)} interruption figures, "
        f"{path.stat().st_size / 1000:.0f} kB"
    )


if __name__ == "__main__":
    main()
