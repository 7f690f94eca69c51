"""`spotwright predict --configs`: a table of what-ifs."""

from pathlib import Path

from spotwright.adapters.measurements.read import parse_table, table_text
from spotwright.adapters.measurements.write import with_predictions
from spotwright.cli.terminal import note, print_json, refuse_overwriting, write_text
from spotwright.domain.questions import JobDocument, RowPrediction
from spotwright.usecases.planner_port import Planner


def predict_table(
    planner: Planner, job: JobDocument, configs: Path, csv: Path | None, *, as_json: bool
) -> None:
    """Predict every row of a file and write it with the predicted columns added."""
    if csv is not None:
        refuse_overwriting(csv, configs, Path(job.name))
    text = table_text(configs)
    predicted = planner.predict_configurations(job, text, csv_name=str(configs))
    table = parse_table(text, path=str(configs))
    for warning in predicted.warnings:
        note(f"warning: {warning}")
    figures = [_figures(prediction) for prediction in predicted.rows]
    if csv is not None:
        write_text(csv, with_predictions(table, figures))
        note(f"{len(figures)} rows written to {csv}")
    if as_json:
        print_json([row | f for row, f in zip(table.rows, figures, strict=True)])
    elif csv is None:
        print(with_predictions(table, figures), end="")


def _figures(prediction: RowPrediction) -> dict[str, float]:
    return {
        "predicted_step_s": prediction.step_s.mid,
        "low_step_s": prediction.step_s.low,
        "high_step_s": prediction.step_s.high,
        "predicted_cluster_steps_per_s": prediction.cluster_steps_per_s,
    }
