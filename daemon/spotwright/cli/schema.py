"""`spotwright schema`: JSON Schema of the files people and programs write."""

import typer

from spotwright.cli.terminal import print_json
from spotwright.domain.errors import MissingExtraError

app = typer.Typer(help="Print the JSON Schema of a file format.", no_args_is_help=True)


@app.command("job")
def job() -> None:
    """Print the JSON Schema of a job file."""
    try:
        from spotwright.adapters.jobfile.schema import JobFile  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("schema job", extra="plan") from error
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema"} | _schema(JobFile))


def _schema(model: type) -> dict[str, object]:
    schema: dict[str, object] = model.model_json_schema()  # type: ignore[attr-defined]
    return schema


@app.callback()
def _group() -> None:
    """Keep `job` a subcommand."""
