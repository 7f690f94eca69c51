"""`spotwright predict`: what a fleet will do, as one what-if or as a table of them."""

from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.asking import planner_to_ask
from spotwright.cli.configurations import predict_table
from spotwright.cli.options import AsJson, CatalogFile, Daemon, JobFile, Model, TlsDir
from spotwright.cli.prediction_view import prediction_json, print_prediction
from spotwright.cli.sources import age_text, read_document
from spotwright.cli.terminal import note, print_json
from spotwright.domain.errors import BadInputError


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
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Predict time, loss and cost of a fleet, and explain where each step's time goes."""
    document = read_document(job, model=model)
    if (fleet is None) == (configs is None):
        raise BadInputError("give either --fleet EXPR, or --configs FILE.csv")
    if csv is not None and configs is None:
        raise BadInputError("--csv goes with --configs FILE.csv; one fleet has no table")
    with planner_to_ask(daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file) as planner:
        if configs is not None:
            predict_table(planner, document, configs, csv, as_json=as_json)
            return
        assert fleet is not None
        answer = planner.predict(document, fleet)
    if as_json:
        observed = answer.catalog_time.isoformat()
        print_json(prediction_json(answer.prediction) | {"catalog_time": observed})
        return
    print_prediction(answer.prediction)
    note(f"prices of {answer.catalog_time:%Y-%m-%d}, {age_text(answer.catalog_time)}")
