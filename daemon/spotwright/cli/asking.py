"""Whom a command asks: the planner of this process, or that of a daemon."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spotwright.cli.config import Config, read_config
from spotwright.cli.sources import Catalogs, Jobs
from spotwright.domain.errors import BadInputError
from spotwright.domain.plan import Objective
from spotwright.usecases.planner_port import Planner

if TYPE_CHECKING:
    from spotwright.cli.search_watch import SearchWatch
    from spotwright.client import Client


@contextmanager
def planner_to_ask(
    *, daemon: str | None, tls_dir: Path | None, catalog_file: Path | None
) -> Iterator[Planner]:
    """Open the daemon that a flag names, else the one of the settings, else this process.

    A catalog that a flag names is read by this process: it comes before a daemon of the settings.
    """
    config = read_config()
    if daemon is not None and catalog_file is not None:
        raise BadInputError(
            "--catalog is a file of this machine, and --daemon has its own: drop one"
        )
    address = daemon or (config.daemon if catalog_file is None else None)
    if address is not None:
        with daemon_client(address, tls_dir=tls_dir, config=config) as client:
            yield client
        return
    if tls_dir is not None:
        raise BadInputError("--tls-dir goes with --daemon HOST:PORT")
    from spotwright.cli.in_process import InProcessPlanner  # noqa: PLC0415

    catalogs = Catalogs(config, file=catalog_file)
    yield InProcessPlanner(Jobs(catalogs.of), catalogs, look=_look)


def daemon_client(address: str, *, tls_dir: Path | None, config: Config) -> "Client":
    """Return a client of a daemon, with the certificates and the token of the settings."""
    from spotwright.client import Client  # noqa: PLC0415

    return Client(address, tls_dir=tls_dir or config.tls_dir, token=config.token)


def _look(objective: Objective, time_limit_s: float) -> "SearchWatch":
    from spotwright.cli.search_watch import watch_search  # noqa: PLC0415

    return watch_search(objective, time_limit_s)
