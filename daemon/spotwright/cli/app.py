"""All commands. Each is a module of its own; heavy libraries are imported when a command runs."""

from importlib.metadata import version
from typing import Annotated

import typer

from spotwright.cli import catalog, certs, jobs, schema, tokens
from spotwright.cli.apply import apply
from spotwright.cli.calibrate import calibrate
from spotwright.cli.compare import compare
from spotwright.cli.destroy import destroy
from spotwright.cli.job_report import report
from spotwright.cli.plan import plan
from spotwright.cli.predict import predict
from spotwright.cli.probe import probe
from spotwright.cli.profile import profile
from spotwright.cli.reconcile import reconcile
from spotwright.cli.serve import serve
from spotwright.cli.simulate import simulate
from spotwright.cli.status import status
from spotwright.cli.terminal import is_plain
from spotwright.cli.train import train
from spotwright.cli.watch import watch

app = typer.Typer(
    name="spotwright",
    help="Plan and predict GPU fleets for a training job: what to rent, time, cost, risk, and why.",
    epilog="Exit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 no feasible fleet.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if is_plain() else "rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(plan)
app.command()(predict)
app.command()(compare)
app.command()(simulate)
app.command()(calibrate)
app.command()(profile)
app.command()(train)
app.command()(apply)
app.command()(destroy)
app.command()(reconcile)
app.command()(serve)
app.command()(status)
app.command()(watch)
app.command()(report)
app.command()(probe)
app.add_typer(catalog.app, name="catalog")
app.add_typer(jobs.app, name="jobs")
app.add_typer(schema.app, name="schema")
app.add_typer(certs.app, name="certs")
app.add_typer(tokens.app, name="tokens")


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
