"""`spotwright serve`: the daemon."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from spotwright.cli.config import default_store_url
from spotwright.cli.extras import needs_extra
from spotwright.cli.goal_flags import read_flag
from spotwright.cli.options import AsJson, CatalogFile
from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, CatalogFileError
from spotwright.domain.units import parse_duration_s

_OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the flags of `serve` ask for."""

    listen: Address
    store_url: str
    tls_dir: Path | None
    metrics: Address | None  # None: off
    metrics_per_gpu: bool
    history_dir: Path | None  # None: off
    raw_window_s: float
    replica: str
    catalog_file: Path | None
    as_json: bool
    fleets_dir: Path | None = None  # None: nothing is written or applied
    webhook_url: str | None = None


_Listen = Annotated[str, typer.Option(help="Where to listen; off loopback only with --tls-dir.")]
_Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="sqlite:///FILE, or postgresql://... for several daemons.",
        show_default="a SQLite file in the data folder",
    ),
]
_TlsDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Certificates, made by `certs init`.")
]
_Metrics = Annotated[
    str, typer.Option(metavar="HOST:PORT|off", help="Where Prometheus reads /metrics.")
]
_PerGpu = Annotated[bool, typer.Option("--metrics-per-gpu", help="Also series for each GPU; many.")]
_History = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|off",
        help="Where samples go as Parquet files.",
        show_default="history beside the store; off with PostgreSQL",
    ),
]
_RawWindow = Annotated[str, typer.Option(help="How long raw samples can be asked for.")]
_Replica = Annotated[
    str | None, typer.Option(help="Name of this daemon among others.", show_default="host-port")
]
_Fleets = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where fleets of jobs are written and applied, a folder each; none without it.",
    ),
]
_Webhook = Annotated[
    str | None, typer.Option(metavar="URL", help="Told of each decision about a job, as JSON.")
]
_LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]
_LogText = Annotated[bool, typer.Option("--log-text", help="Logs for people.")]


def serve(
    *,
    listen: _Listen = "127.0.0.1:7443",
    store: _Store = None,
    tls_dir: _TlsDir = None,
    metrics: _Metrics = "127.0.0.1:9464",
    metrics_per_gpu: _PerGpu = False,
    history: _History = None,
    raw_window: _RawWindow = "30m",
    replica: _Replica = None,
    fleets: _Fleets = None,
    webhook: _Webhook = None,
    catalog_file: CatalogFile = None,
    log_level: _LogLevel = "info",
    log_text: _LogText = False,
    as_json: AsJson = False,
) -> None:
    """Serve plans, jobs and telemetry over gRPC until SIGTERM or Ctrl-C.

    On loopback without --tls-dir whoever has an account on this host may do everything. Elsewhere
    every caller needs a certificate, and people a token.

    \b
    spotwright serve
    spotwright serve --listen 0.0.0.0:7443 --tls-dir /etc/spotwright/tls
    spotwright serve --store postgresql://spotwright@db/spotwright --replica a
    """
    address = _address("--listen", listen)
    if not address.is_loopback and tls_dir is None:
        raise BadInputError(
            f"--listen {listen} is not loopback, and there is no plaintext beyond it: make "
            "certificates with `spotwright certs init --dir DIR --host NAME`, where NAME is what "
            "callers call this host, and give --tls-dir DIR"
        )
    if log_level.lower() not in ("debug", "info", "warning", "error"):
        raise BadInputError(f"--log-level: debug, info, warning or error, got {log_level!r}")
    if catalog_file is not None and not catalog_file.is_file():
        raise CatalogFileError("no such file", path=str(catalog_file))
    store_url = store or default_store_url()
    asked = Served(
        listen=address,
        store_url=store_url,
        tls_dir=tls_dir,
        metrics=None if metrics == _OFF else _address("--metrics", metrics),
        metrics_per_gpu=metrics_per_gpu,
        history_dir=_history_dir(history, store_url),
        raw_window_s=read_flag("--raw-window", parse_duration_s, raw_window),
        replica=replica or _replica_name(address),
        catalog_file=catalog_file,
        as_json=as_json,
        fleets_dir=fleets,
        webhook_url=_checked_url(webhook),
    )
    with needs_extra("daemon", "serve"):
        from spotwright.cli.daemon.run import run_daemon  # noqa: PLC0415
        from spotwright.cli.daemon.structured_log import set_up_logging  # noqa: PLC0415
    set_up_logging(level=log_level, as_json=not log_text)
    run_daemon(asked)


def _checked_url(url: str | None) -> str | None:
    if url is not None and not url.startswith(("https://", "http://")):
        raise BadInputError(f"--webhook: an http:// or https:// address, got {url!r}")
    return url


def _address(flag: str, text: str) -> Address:
    try:
        return Address.parse(text, least_port=0)
    except BadInputError as error:
        raise BadInputError(f"{flag}: {error}") from error


def _replica_name(address: Address) -> str:
    """Return a name that no other daemon of this host has now."""
    return f"{socket.gethostname()}-{address.port or f'pid{os.getpid()}'}"


def _history_dir(flag: str | None, store_url: str) -> Path | None:
    if flag == _OFF:
        return None
    if flag is not None:
        return Path(flag)
    if not store_url.startswith("sqlite:///"):
        return None
    return Path(store_url.removeprefix("sqlite:///")).parent / "history"
