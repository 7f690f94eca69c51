"""`spotwright predict`: what a fleet will do, as one what-if or as a table of them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, JobFile, Model
from spotwright.cli.sources import age_text, open_job
from spotwright.cli.terminal import note, print_json
from spotwright.domain.errors import BadInputError, JobFileError


def predict(
    job: JobFile,
    *,
    fleet: Annotated[
        str | None, typer.Option(help="Fleet, such as 'g5.xlarge*3/spot + ps=m5.xlarge'.")
    ] = None,
    configs: Annotated[
        Path | None, typer.Option(help="CSV of configurations; short runs, at burst network rates.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Where the predicted table goes.")] = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict time, loss and cost of a fleet, and explain where each step's time goes."""
    if not job.exists():
        raise JobFileError("no such file", path=str(job))
    if (fleet is None) == (configs is None):
        raise BadInputError("give either --fleet EXPR, or --configs FILE.csv")
    if csv is not None and configs is None:
        raise BadInputError("--csv goes with --configs FILE.csv; one fleet has no table")
    opened = open_job(job, catalog_file=catalog_file, model=model)
    if configs is not None:
        with needs_extra("plan", "predict"):
            from spotwright.cli.configurations import predict_table  # noqa: PLC0415
        predict_table(opened, configs, csv, as_json=as_json)
        return
    assert fleet is not None
    with needs_extra("plan", "predict"):
        from spotwright.cli.prediction_view import prediction_json, print_prediction  # noqa: PLC0415
        from spotwright.usecases.predict_fleet import predict_fleet  # noqa: PLC0415
    prediction = predict_fleet(opened.job, fleet, opened.catalog, now=datetime.now(UTC))
    observed = opened.catalog.oldest_price_time(g.offer for g in prediction.fleet.nodes if g.offer)
    if as_json:
        print_json(prediction_json(prediction) | {"catalog_time": observed.isoformat()})
        return
    print_prediction(prediction)
    note(f"prices of {observed:%Y-%m-%d}, {age_text(observed)}")
