"""`spotwright report`: what was planned against what was measured."""

from typing import Annotated

import typer

from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.job_view import TERM_COLUMNS, findings, report_json, report_rows, term_rows
from spotwright.cli.options import AsJson, Daemon, TlsDir
from spotwright.cli.terminal import console, print_json, print_table


def report(
    job_id: Annotated[str, typer.Argument(metavar="JOB_ID", help="Id, as `jobs list` shows it.")],
    *,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Set a job's plan against what was measured.

    While the job runs, its duration and cost are what they will be if it goes on as it did.
    """
    with daemon_access(daemon, tls_dir).open() as client:
        found = client.get_job_report(job_id)
    if as_json:
        print_json(report_json(found))
        return
    job = found.job
    console().print(f"{job.job_id}: {job.state}, plan {job.plan_id}")
    print_table(("figure", "planned>", "measured>", "difference>"), report_rows(found))
    if any(term.measured_s is not None for term in found.terms):
        console().print()
        print_table(TERM_COLUMNS, term_rows(found))
        for text in findings(found):
            console().print(text)
