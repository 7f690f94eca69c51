"""`spotwright compare`: fleets written by hand, side by side."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.options import AsJson, CatalogFile, JobFile, Model
from spotwright.cli.sources import age_text, open_job
from spotwright.cli.terminal import note, print_json
from spotwright.domain.errors import BadInputError, JobFileError


def compare(
    job: JobFile,
    *,
    fleet: Annotated[
        list[str] | None, typer.Option(help="A fleet, such as 'g5.xlarge*3/spot'; twice or more.")
    ] = None,
    model: Model = None,
    catalog_file: CatalogFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict several fleets and mark the cheapest that meets the goal and keeps the limits.

    \b
    spotwright compare job.yaml --fleet 'g5.xlarge*4/spot' --fleet 'g6.xlarge*6/spot'
    """
    fleets = fleet or []
    if len(fleets) < 2:
        raise BadInputError("give --fleet at least twice; for one fleet there is predict")
    if not job.exists():
        raise JobFileError("no such file", path=str(job))
    opened = open_job(job, catalog_file=catalog_file, model=model)
    with needs_extra("plan", "compare"):
        from spotwright.cli.compare_view import comparison_json, print_comparison  # noqa: PLC0415
        from spotwright.usecases.compare_fleets import compare_fleets  # noqa: PLC0415
    compared = compare_fleets(opened.job, fleets, opened.catalog, now=datetime.now(UTC))
    nodes = [group for each in compared for group in each.prediction.fleet.nodes]
    observed = opened.catalog.oldest_price_time(g.offer for g in nodes if g.offer)
    if as_json:
        print_json(comparison_json(compared) | {"catalog_time": observed.isoformat()})
        return
    print_comparison(compared)
    note(f"prices of {observed:%Y-%m-%d}, {age_text(observed)}")
