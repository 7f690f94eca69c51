"""`spotwright watch`: a daemon's jobs and agents as they change."""

from typing import TYPE_CHECKING, Annotated

import typer

from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.options import AsJson, Daemon, TlsDir
from spotwright.cli.terminal import is_plain
from spotwright.cli.watch_sinks import JsonSink, LineSink

if TYPE_CHECKING:
    from spotwright.cli.follow_daemon import Sink


def watch(
    job_id: Annotated[
        str | None, typer.Argument(metavar="[JOB_ID]", help="One job, until it has ended.")
    ] = None,
    *,
    daemon: Daemon = None,
    tls_dir: TlsDir = None,
    as_json: AsJson = False,
) -> None:
    """Show jobs and agents as they change, until Ctrl-C, or until the one job has ended.

    Without a terminal each change is a line; with --json a line of JSON. A daemon that restarts is
    waited for.
    """
    from spotwright.cli.follow_daemon import Wanted, follow_daemon  # noqa: PLC0415

    follow_daemon(daemon_access(daemon, tls_dir), Wanted(job_id=job_id), _sink(as_json))


def _sink(as_json: bool) -> "Sink":
    if as_json:
        return JsonSink()
    if is_plain():
        return LineSink()
    from spotwright.cli.live_view import LiveSink  # noqa: PLC0415

    return LiveSink()
