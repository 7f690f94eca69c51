"""`spotwright tokens`: what people and machines show to a daemon, made on its store itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spotwright.cli.config import default_store_url
from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import read_flag
from spotwright.cli.options import AsJson
from spotwright.cli.terminal import note, print_json, print_table
from spotwright.domain.access import AccessRole, TokenRecord
from spotwright.domain.units import parse_duration_s
from spotwright.usecases.tokens import create_token, list_tokens, revoke_token

if TYPE_CHECKING:
    from spotwright.adapters.store.sql_store import SqlStore

app = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)

_StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="The daemon's.", show_default="as `serve` has it"),
]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Who will have it: a person or a machine.")],
    *,
    role: Annotated[AccessRole, typer.Option(help="What it allows.")],
    expires: Annotated[
        str | None, typer.Option(help="How long: 90d.", show_default="until it is revoked")
    ] = None,
    store: _StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, once: only its hash is kept.

    \b
    spotwright tokens create ci --role planner --expires 90d
    """
    valid_s = None if expires is None else read_flag("--expires", parse_duration_s, expires)
    with _opened(store) as opened:
        made = create_token(opened, name=name, role=role, valid_s=valid_s, now=datetime.now(UTC))
    if as_json:
        print_json({"token": made.text} | _document(made.record))
        return
    print(made.text)
    note(f"token {made.record.token_id} of {name}: {role}, {_ends(made.record)}; shown only now")


@app.command("list")
def list_all(*, store: _StoreUrl = None, as_json: AsJson = False) -> None:
    """List tokens, also those that have ended."""
    with _opened(store) as opened:
        records = list_tokens(opened)
    if as_json:
        print_json({"tokens": [_document(record) for record in records]})
        return
    columns = ("id", "name", "role", "made", "state")
    print_table(columns, [_row(record) for record in records])


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `tokens list` shows it.")],
    *,
    store: _StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """End a token. Daemons that run refuse it within 10 seconds."""
    with _opened(store) as opened:
        revoke_token(opened, token_id, now=datetime.now(UTC))
    if as_json:
        print_json({"token_id": token_id, "revoked": True})
    else:
        print(f"revoked {token_id}")


@contextmanager
def _opened(url: str | None) -> Iterator["SqlStore"]:
    with needs_extra("daemon", "tokens"):
        from spotwright.adapters.store.sql_store import open_store  # noqa: PLC0415
    store = open_store(url or default_store_url())
    try:
        yield store
    finally:
        store.close()


def _document(record: TokenRecord) -> dict[str, Any]:
    return {
        "token_id": record.token_id,
        "name": record.name,
        "role": record.role,
        "create_time": record.create_time.isoformat(),
        "expire_time": record.expire_time.isoformat() if record.expire_time else None,
        "revoke_time": record.revoke_time.isoformat() if record.revoke_time else None,
    }


def _row(record: TokenRecord) -> tuple[str, ...]:
    made = f"{record.create_time:%Y-%m-%d}"
    return record.token_id, record.name, record.role, made, _ends(record)


def _ends(record: TokenRecord) -> str:
    if record.revoke_time is not None:
        return f"revoked on {record.revoke_time:%Y-%m-%d %H:%M} UTC"
    if record.expire_time is None:
        return "valid until revoked"
    valid = record.is_valid(datetime.now(UTC))
    return f"{'valid until' if valid else 'ended on'} {record.expire_time:%Y-%m-%d %H:%M} UTC"
