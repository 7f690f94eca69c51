"""`spotwright jobs`: plans being carried out."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.job_view import (
    JOB_COLUMNS,
    event_json,
    event_line,
    job_json,
    job_row,
    print_job,
)
from spotwright.cli.options import AsJson, Daemon, TlsDir
from spotwright.cli.terminal import note, print_json, print_table
from spotwright.cli.watch_sinks import JsonSink, LineSink
from spotwright.domain.job_run import Event, JobRun, JobState, Steer

if TYPE_CHECKING:
    from spotwright.client import Client

_PAGE = 1000

app = typer.Typer(help="Start, list, show and stop jobs of a daemon.", no_args_is_help=True)
JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="Id, as `jobs list` shows it.")]


@app.command("start")
def start(
    plan_id: Annotated[str, typer.Argument(help="Id of a plan that the daemon made.")],
    *,
    steer: Annotated[
        Steer, typer.Option(help="What the daemon does about nodes that are lost, and the like.")
    ] = Steer.OFF,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Follow a job that runs a plan; print its id, for agents and training to report by."""
    with daemon_access(daemon, tls_dir).open() as client:
        job = client.create_job(plan_id, steer=steer)
    if as_json:
        print_json(job_json(job))
    else:
        print(job.job_id)


@app.command("list")
def list_jobs(
    *,
    state: Annotated[list[JobState] | None, typer.Option(help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    with daemon_access(daemon, tls_dir).open() as client:
        jobs, more = read_jobs(client, states=state or (), limit=limit)
    if as_json:
        print_json({"jobs": [job_json(job) for job in jobs], "more": more})
        return
    now = datetime.now(UTC)
    print_table(JOB_COLUMNS, [job_row(job, now) for job in jobs])
    if more:
        note(f"only the {len(jobs)} newest are listed; --limit shows more")


@app.command("show")
def show(
    job_id: JobId, *, daemon: Daemon = None, tls_dir: TlsDir = None, as_json: AsJson = False
) -> None:
    """Show one job."""
    with daemon_access(daemon, tls_dir).open() as client:
        job = client.get_job(job_id)
    if as_json:
        print_json(job_json(job))
    else:
        print_job(job, datetime.now(UTC))


@app.command("stop")
def stop(
    job_id: JobId,
    *,
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """End a job before its goal."""
    with daemon_access(daemon, tls_dir).open() as client:
        job = client.stop_job(job_id, reason=reason)
    if as_json:
        print_json(job_json(job))
    else:
        print(f"{job.job_id} {job.state}")


@app.command("events")
def events(
    job_id: JobId,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Until the job has ended.")] = False,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Print what happened to a job, oldest first; with --follow also what happens from now on.

    JSON comes as one document, with --follow as one line for each event.
    """
    access = daemon_access(daemon, tls_dir)
    if follow:
        from spotwright.cli.follow_daemon import Wanted, follow_daemon  # noqa: PLC0415

        sink = JsonSink(only_events=True) if as_json else LineSink(only_events=True)
        follow_daemon(access, Wanted(job_id=job_id, agents=False), sink)
        return
    with access.open() as client:
        log = _read_events(client, job_id)
    if as_json:
        print_json({"events": [event_json(event) for event in log]})
        return
    for event in log:
        print(event_line(event))


def read_jobs(
    client: "Client", *, states: Collection[JobState], limit: int
) -> tuple[list[JobRun], bool]:
    """Return the newest jobs, and whether there are more."""
    jobs: list[JobRun] = []
    token = ""
    while len(jobs) < limit:
        page = client.list_jobs(
            states=states, page_size=min(_PAGE, limit - len(jobs)), page_token=token
        )
        jobs += page.jobs
        token = page.next_page_token
        if not token:
            break
    return jobs, bool(token)


def _read_events(client: "Client", job_id: str) -> list[Event]:
    log = client.list_job_events(job_id, page_size=_PAGE)
    while page := client.list_job_events(
        job_id, after_sequence=log[-1].sequence if log else 0, page_size=_PAGE
    ):
        log += page
    return log
