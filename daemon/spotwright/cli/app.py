"""All commands. Each is a module of its own; heavy libraries are imported when a command runs."""

from importlib.metadata import version
from typing import Annotated

import typer

from spotwright.cli import catalog, schema
from spotwright.cli.calibrate import calibrate
from spotwright.cli.predict import predict
from spotwright.cli.terminal import is_plain

app = typer.Typer(
    name="spotwright",
    help="Predict what GPU fleets do with a training job: time, cost, risk, and why.",
    epilog="Exit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 no feasible fleet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if is_plain() else "rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(predict)
app.command()(calibrate)
app.add_typer(catalog.app, name="catalog")
app.add_typer(schema.app, name="schema")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spotwright {version('spotwright')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass
