"""Write a table of configurations back with what was predicted for each row."""

import csv
import io
from collections.abc import Mapping, Sequence

from spotwright.adapters.measurements.read import Table

PREDICTED = ("predicted_step_s", "low_step_s", "high_step_s", "predicted_cluster_steps_per_s")


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
