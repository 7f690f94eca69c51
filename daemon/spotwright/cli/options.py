"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CatalogFile = Annotated[
    Path | None, typer.Option("--catalog", help="Snapshot file instead of the usual one.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="Which workload, where a job file holds several.")
]
JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="Job file (YAML).")]
Daemon = Annotated[
    str | None,
    typer.Option("--daemon", metavar="HOST:PORT", help="Ask this daemon; SPOTWRIGHT_DAEMON."),
]
TlsDir = Annotated[
    Path | None,
    typer.Option(
        "--tls-dir", metavar="DIR", help="ca.crt, client.crt and client.key for --daemon."
    ),
]
FleetDir = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="Terraform folder of the fleet.")
]
AutoApprove = Annotated[
    bool, typer.Option("--auto-approve", help="Do not ask; rent or give up at once.")
]
TerraformProgram = Annotated[
    str | None,
    typer.Option("--terraform", metavar="PROGRAM", help="Instead of terraform or tofu."),
]
