"""Whether samples are lost while the daemon is restarted or away."""

import tempfile
from pathlib import Path

from benchmarks.daemon.ingest_cases import against
from benchmarks.table import print_table
from tests.e2e.outages import SEED, endure


def print_outages(*, quick: bool) -> None:
    """Print what is missing afterwards; an outage of half an hour is in `make soak`."""
    restart_count, outage_s = (4, 5.0) if quick else (20, 60.0)
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        endured = endure(Path(folder), restart_count=restart_count, outage_s=outage_s)
    lines = [
        ("samples stored", f"{len(endured.samples):,}", "-", "-"),
        ("gaps or overlaps", str(len(endured.gaps)), *against(len(endured.gaps), 0)),
        ("dropped", str(endured.dropped_count), *against(endured.dropped_count, 0)),
    ]
    what = f"{restart_count} restarts, half of them kill -9, and {outage_s:.0f} s away, seed {SEED}"
    print_table(what, ("figure", "found", "target", "verdict"), lines)
