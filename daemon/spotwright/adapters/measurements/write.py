"""Write rows of measurements, and tables with what was predicted for each row."""

import csv
import io
from collections.abc import Mapping, Sequence

from spotwright.adapters.measurements.read import Table
from spotwright.domain.measurement import Measurement

PREDICTED = ("predicted_step_s", "low_step_s", "high_step_s", "predicted_cluster_steps_per_s")


_COLUMNS = ("strategy", "fleet", "ps_count", "ps_type", "batch_per_gpu")
_SPEEDS = ("step_s", "cluster_steps_per_s")


def measurements_text(rows: Sequence[Measurement]) -> str:
    """Return rows as the CSV text that calibrate reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *_SPEEDS])
    for row in rows:
        cells = [getattr(row.configuration, name) for name in _COLUMNS]
        speeds = [getattr(row, name) for name in _SPEEDS]
        writer.writerow(
            ["" if cell is None else cell for cell in cells]
            + ["" if speed is None else f"{speed:.6g}" for speed in speeds]
        )
    return text.getvalue()


def with_predictions(table: Table, predictions: Sequence[Mapping[str, float]]) -> str:
    """Return the CSV text: the rows in order, their own columns first, then the predicted ones."""
    own = [place for place, name in enumerate(table.columns) if name not in PREDICTED]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(table.columns[place] for place in own), *PREDICTED])
    for cells, prediction in zip(table.cells, predictions, strict=True):
        figures = (f"{prediction[name]:.6g}" for name in PREDICTED)
        writer.writerow([*(cells[place] for place in own), *figures])
    return text.getvalue()
