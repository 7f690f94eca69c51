"""`spotwright certs`: certificates of the daemon, its clients and its agents."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import read_flag
from spotwright.cli.options import AsJson
from spotwright.cli.publish_certs import publish
from spotwright.cli.terminal import note, print_json, print_table
from spotwright.domain.errors import BadInputError
from spotwright.domain.units import parse_duration_s

if TYPE_CHECKING:
    from spotwright.adapters.tls.certificate_facts import CertificateFacts

app = typer.Typer(help="Make, renew, show and publish certificates.", no_args_is_help=True)

_DAY_S = 86_400
_WITHIN = "30d"
_Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of certificates.")]
_Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", help="Name or address that clients call the daemon by; repeat."),
]


class _Kind(StrEnum):
    AGENT = "agent"
    CLIENT = "client"
    SERVER = "server"


@app.command("init")
def init(
    *,
    folder: _Folder,
    host: _Hosts = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an authority: its certificates are void.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make an authority, and with it certificates of a daemon and of its clients.

    \b
    spotwright certs init --dir /etc/spotwright/tls --host gpu-head.example.org
    """
    with needs_extra("daemon", "certs"):
        from spotwright.adapters.tls.issue_files import init_folder  # noqa: PLC0415
    made = init_folder(folder, hosts=host or (), now=datetime.now(UTC), replace_ca=force)
    _print(made, as_json=as_json)
    if not as_json:
        note(
            f"next: `spotwright serve --tls-dir {folder}` and `spotwright tokens create`. Whoever "
            "has ca.key can pretend to be anyone: keep it only where certificates are made"
        )


@app.command("issue")
def issue(
    kind: Annotated[_Kind, typer.Argument(help="Whose it is.")],
    name: Annotated[str, typer.Argument(help="Id of the agent, or name of the client.")] = "",
    *,
    folder: _Folder,
    host: _Hosts = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, help="Valid for so long.", show_default="90; a server 365"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make one certificate, in place of the one that agent, client or server has.

    \b
    spotwright certs issue --dir tls agent gpu-7
    spotwright certs issue --dir tls client ci --days 30
    spotwright certs issue --dir tls server --host gpu-head.example.org --host 10.0.0.5
    """
    if (kind is _Kind.SERVER) == bool(name):
        problem = "a server has no name" if name else f"name the {kind}"
        raise BadInputError(f"{problem}: agent ID, client NAME, or server --host HOST")
    if kind is _Kind.SERVER and not host:
        raise BadInputError(
            "name what callers call the server: server --host HOST; to keep the names that it has, "
            "there is `spotwright certs renew server`"
        )
    if host and kind is not _Kind.SERVER:
        raise BadInputError(f"--host goes with server, not with {kind}")
    with needs_extra("daemon", "certs"):
        from spotwright.adapters.tls import authority, issue_files  # noqa: PLC0415
    certificate_kind = authority.CertificateKind(kind)
    request = authority.CertificateRequest(
        kind=certificate_kind,
        name=name or issue_files.SERVER_NAME,
        days=days or authority.DEFAULT_DAYS[certificate_kind],
        hosts=tuple(host or ()),
    )
    _print(issue_files.issue(folder, [request], now=datetime.now(UTC)), as_json=as_json)


@app.command("renew")
def renew(
    names: Annotated[
        list[str] | None, typer.Argument(help="server, client, or ids of agents; else all.")
    ] = None,
    *,
    folder: _Folder,
    every: Annotated[
        bool, typer.Option("--all", help="However long they are still valid.")
    ] = False,
    within: Annotated[
        str | None,
        typer.Option(
            help="Only those that end so soon.", show_default=f"{_WITHIN}; named ones all"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make certificates anew that end soon. A daemon that runs takes its own up by itself.

    \b
    spotwright certs renew --dir tls --within 30d
    spotwright certs renew --dir tls gpu-7
    """
    if every and (names or within):
        raise BadInputError("--all goes with neither names nor --within")
    if within is None and not (every or names):
        within = _WITHIN
    limit_s = None if within is None else read_flag("--within", parse_duration_s, within)
    with needs_extra("daemon", "certs"):
        from spotwright.adapters.tls import issue_files  # noqa: PLC0415
    renewed = issue_files.renew(
        folder,
        names=names or (),
        within_days=None if limit_s is None else limit_s / _DAY_S,
        now=datetime.now(UTC),
    )
    _print(renewed, as_json=as_json)
    if not (renewed or as_json):
        note(f"no certificate of {folder} ends within {within}")


@app.command("show")
def show(*, folder: _Folder, as_json: AsJson = False) -> None:
    """Show the certificates of a folder and the days that are left."""
    with needs_extra("daemon", "certs"):
        from spotwright.adapters.tls.certificate_files import list_certificates  # noqa: PLC0415
    _print(list_certificates(folder), as_json=as_json)


app.command("publish")(publish)


def _print(certificates: Sequence["CertificateFacts"], *, as_json: bool) -> None:
    now = datetime.now(UTC)
    if as_json:
        print_json({"certificates": [_document(facts, now) for facts in certificates]})
    elif certificates:
        columns = ("file", "kind", "name", "ends", "days left>", "hosts", "")
        print_table(columns, [_row(facts, now) for facts in certificates])


def _document(facts: "CertificateFacts", now: datetime) -> dict[str, Any]:
    times = {
        "start_time": facts.start_time.isoformat(),
        "expire_time": facts.expire_time.isoformat(),
        "hosts": list(facts.hosts),
        "days_left": round(facts.days_left(now), 2),
    }
    return asdict(facts) | times


def _row(facts: "CertificateFacts", now: datetime) -> tuple[str, ...]:
    return (
        facts.file,
        facts.kind,
        facts.name,
        f"{facts.expire_time:%Y-%m-%d %H:%M}",
        f"{facts.days_left(now):.1f}",
        " ".join(facts.hosts),
        _fault(facts, now),
    )


def _fault(facts: "CertificateFacts", now: datetime) -> str:
    if not facts.of_this_ca:
        return "not of this authority"
    return "EXPIRED" if facts.days_left(now) <= 0 else ""
