"""`spotwright schema`: JSON Schema of the files people and programs write and read."""

from typing import Annotated, Any

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.terminal import print_json

app = typer.Typer(help="Print the JSON Schema of a file format.", no_args_is_help=True)

_AlwaysJson = Annotated[
    bool, typer.Option("--json", help="JSON is all there is.", show_default=False)
]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@app.command("job")
def job(*, _as_json: _AlwaysJson = True) -> None:
    """Print the JSON Schema of a job file."""
    with needs_extra("plan", "schema job"):
        from spotwright.adapters.jobfile.schema import JobFile  # noqa: PLC0415
    print_json({"$schema": _DIALECT} | JobFile.model_json_schema())


@app.command("plan")
def plan(*, _as_json: _AlwaysJson = True) -> None:
    """Print the JSON Schema of what `plan --json` prints."""
    from spotwright.cli.plan_schema import PLAN_SCHEMA  # noqa: PLC0415

    print_json({"$schema": _DIALECT} | PLAN_SCHEMA)


@app.command("measurements")
def measurements(*, _as_json: _AlwaysJson = True) -> None:
    """Print the JSON Schema of one row of a measurements file (CSV)."""
    from spotwright.adapters.measurements.schema import ROW_SCHEMA  # noqa: PLC0415

    document: dict[str, Any] = {"$schema": _DIALECT} | ROW_SCHEMA
    print_json(document)
