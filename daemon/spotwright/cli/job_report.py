"""`spotwright report`: what was planned against what was measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spotwright.cli.account_view import POOL_COLUMNS, pool_rows, pools_csv
from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.job_view import TERM_COLUMNS, findings, report_json, report_rows, term_rows
from spotwright.cli.options import AsJson, Daemon, TlsDir
from spotwright.cli.terminal import console, note, print_json, print_table, write_text
from spotwright.domain.errors import BadInputError
from spotwright.usecases.bill_words import bill_notes

if TYPE_CHECKING:
    from spotwright.usecases.job_report import JobReport

_Csv = Annotated[
    str | None, typer.Option("--csv", metavar="FILE", help="A row for each pool; - for stdout.")
]
_Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="The same as a page with plots.")
]


def report(
    job_id: Annotated[str, typer.Argument(metavar="JOB_ID", help="Id, as `jobs list` shows it.")],
    *,
    csv: _Csv = None,
    html: _Html = None,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Set a job's plan against what was measured, rented and paid.

    While the job runs, its duration and cost are what they will be if it goes on as it did.

    \b
    spotwright report resnet50-5f1c --html bill.html
    spotwright report resnet50-5f1c --csv pools.csv
    """
    if csv == "-" and as_json:
        raise BadInputError("--json and --csv - both print on stdout; name a file for one")
    with daemon_access(daemon, tls_dir).open() as client:
        found = client.get_job_report(job_id)
    if csv == "-":
        print(pools_csv(found), end="")
    elif as_json:
        print_json(report_json(found))
    else:
        _print(found)
    if csv not in (None, "-"):
        write_text(Path(str(csv)), pools_csv(found))
        note(f"pools written to {csv}")
    if html is not None:
        from spotwright.adapters.report.job_page import render_job_report  # noqa: PLC0415

        write_text(html, render_job_report(found))
        note(f"report written to {html}")


def _print(found: "JobReport") -> None:
    job, accounts = found.job, found.accounts
    console().print(f"{job.job_id}: {job.state}, plan {job.plan_id}")
    print_table(("figure", "planned>", "measured>", "difference>"), report_rows(found))
    if accounts is not None and accounts.timeline:
        console().print()
        print_table(POOL_COLUMNS, pool_rows(accounts))
        for text in bill_notes(accounts):
            console().print(text)
    if any(term.measured_s is not None for term in found.terms):
        console().print()
        print_table(TERM_COLUMNS, term_rows(found))
        for text in findings(found):
            console().print(text)
