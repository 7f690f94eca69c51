"""The product's own path from measured rows to predictions.

Rows become the text of a measurements file, as `spotwright calibrate` and `spotwright predict
--configs` read it; hardware facts come from the bundled catalog. No benchmark holds a copy of the
model.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from spotwright.adapters.catalog.catalog import Catalog
from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.adapters.measurements.read import (
    OPTIONAL,
    REQUIRED,
    RESULTS,
    Table,
    configurations,
    measurements,
    parse_table,
)
from spotwright.domain.hardware import Cloud
from spotwright.domain.job import JobSpec
from spotwright.domain.questions import RowPrediction
from spotwright.usecases.calibrate_workloads import calibrate_workloads
from spotwright.usecases.predict_configurations import predict_configurations

Cells = Mapping[str, object]
_COLUMNS = (*REQUIRED, *OPTIONAL, *RESULTS)


class Product:
    """Calibration and prediction against the bundled catalog."""

    def __init__(self) -> None:
        """Load the catalog."""
        self._catalog = Catalog(load_snapshot(bundled_path(Cloud.AWS)))

    def calibrate(self, rows: Sequence[Cells]) -> dict[str, JobSpec]:
        """Return the fitted job of each model in the rows."""
        table = _table(rows)
        fitted = calibrate_workloads(measurements(table), self._catalog, path=table.path)
        return {model.name: model.job for model in fitted}

    def predict(
        self, rows: Sequence[Cells], jobs: Mapping[str, JobSpec]
    ) -> Sequence[RowPrediction]:
        """Predict rows; what was measured is withheld."""
        hidden = [{k: v for k, v in row.items() if k not in RESULTS} for row in rows]
        table = _table(hidden)
        predictions, _ = predict_configurations(
            configurations(table), jobs, self._catalog, path=table.path
        )
        return predictions


def _table(rows: Sequence[Cells]) -> Table:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return parse_table(text.getvalue(), path="benchmark rows")
