"""`spotwright compare`: fleets written by hand, side by side."""

from typing import Annotated

import typer

from spotwright.cli.asking import planner_to_ask
from spotwright.cli.compare_view import comparison_json, print_comparison
from spotwright.cli.options import AsJson, CatalogFile, Daemon, JobFile, Model, TlsDir
from spotwright.cli.sources import age_text, read_document
from spotwright.cli.terminal import note, print_json
from spotwright.domain.errors import BadInputError


def compare(
    job: JobFile,
    *,
    fleet: Annotated[
        list[str] | None, typer.Option(help="A fleet, such as 'g5.xlarge*3/spot'; twice or more.")
    ] = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Predict several fleets and mark the cheapest that meets the goal and keeps the limits.

    \b
    spotwright compare job.yaml --fleet 'g5.xlarge*4/spot' --fleet 'g6.xlarge*6/spot'
    """
    fleets = fleet or []
    if len(fleets) < 2:
        raise BadInputError("give --fleet at least twice; for one fleet there is predict")
    document = read_document(job, model=model)
    with planner_to_ask(daemon=daemon, tls_dir=tls_dir, catalog_file=catalog_file) as planner:
        answer = planner.compare_fleets(document, fleets)
    observed = answer.catalog_time
    if as_json:
        print_json(comparison_json(answer.fleets) | {"catalog_time": observed.isoformat()})
        return
    print_comparison(answer.fleets)
    note(f"prices of {observed:%Y-%m-%d}, {age_text(observed)}")
