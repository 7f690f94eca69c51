"""What came out, as rows of tables and of a file."""

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table import Row
from lab.speed import Compared, summary

HEADER = ("scenario", "predicted ms", "90 % interval", "measured ms", "error", "", "bottleneck")
MEAN_TARGET, WORST_TARGET, COVERED_TARGET, CALIBRATED_TARGET = 0.05, 0.12, 0.85, 0.03


def comparison_cells(row: Compared) -> tuple[str, ...]:
    """Return one scenario as cells under `HEADER`; times are between two updates."""
    interval = row.predicted.iteration_s
    return (
        row.scenario.name,
        f"{interval.mid * 1e3:.1f}",
        f"{interval.low * 1e3:.0f} to {interval.high * 1e3:.0f}",
        f"{row.measured_s * 1e3:.1f}",
        f"{row.error_fraction:+.1%}",
        "inside" if row.is_covered else "outside",
        row.predicted.bottleneck,
    )


def target_rows(rows: Sequence[Compared]) -> list[Row]:
    """Return what all scenarios together are held against."""
    found = summary(rows)
    return [
        Row(
            what=f"mean error of {found.count} scenarios",
            figure=f"{found.mean_error_fraction:.1%}",
            target=f"<= {MEAN_TARGET:.0%}",
            is_met=found.mean_error_fraction <= MEAN_TARGET,
        ),
        Row(
            what="worst error",
            figure=f"{found.worst_error_fraction:.1%}",
            target=f"<= {WORST_TARGET:.0%}",
            is_met=found.worst_error_fraction <= WORST_TARGET,
        ),
        Row(
            what="inside the 90 % interval",
            figure=f"{found.covered_fraction:.0%}",
            target=f">= {COVERED_TARGET:.0%}",
            is_met=found.covered_fraction >= COVERED_TARGET,
        ),
    ]


def calibrated_row(rows: Sequence[Compared]) -> Row:
    """Return how far off predictions are whose factors were fitted to other scenarios."""
    error = summary(rows).mean_error_fraction
    return Row(
        what=f"mean error of {len(rows)} scenarios, fitted to the other half of each strategy",
        figure=f"{error:.1%}",
        target=f"<= {CALIBRATED_TARGET:.0%}",
        is_met=error <= CALIBRATED_TARGET,
    )


def steps_row(*, told: int, heard: int) -> Row:
    """Return whether the daemon has heard of every step that workers made."""
    return Row(
        what="steps at the daemon, of those that workers made",
        figure=f"{heard:,} of {told:,}",
        target="all",
        is_met=heard == told,
    )


def write_csv(path: Path, rows: Sequence[Compared]) -> None:
    """Keep all figures."""
    columns = ("scenario", "strategy", "predicted_s", "low_s", "high_s", "measured_s")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            interval = row.predicted.iteration_s
            figures = (interval.mid, interval.low, interval.high, row.measured_s)
            told = (f"{seconds:.6f}" for seconds in figures)
            writer.writerow((row.scenario.name, row.scenario.strategy, *told))
