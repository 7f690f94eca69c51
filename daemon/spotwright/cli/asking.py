"""Whom a command asks: the planner of this process, or that of a daemon."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spotwright.cli.config import read_config
from spotwright.cli.daemon_access import daemon_access
from spotwright.cli.sources import Catalogs, Jobs
from spotwright.domain.errors import BadInputError
from spotwright.domain.plan import Objective
from spotwright.usecases.planner_port import Planner

if TYPE_CHECKING:
    from spotwright.cli.in_process import InProcessPlanner
    from spotwright.cli.search_watch import SearchWatch


@contextmanager
def planner_to_ask(
    *,
    daemon: str | None,
    tls_dir: Path | None,
    catalog_file: Path | None,
    ctrl_c_ends_search: bool = True,
) -> Iterator[Planner]:
    """Open the daemon that a flag names, else the one of the settings, else this process.

    A catalog that a flag names is read by this process: it comes before a daemon of the settings.

    Args:
        daemon: the flag's.
        tls_dir: the flag's.
        catalog_file: the flag's.
        ctrl_c_ends_search: with the best fleet so far; else it ends the command.
    """
    config = read_config()
    if daemon is not None and catalog_file is not None:
        raise BadInputError(
            "--catalog is a file of this machine, and --daemon has its own: drop one"
        )
    if daemon is not None or (config.daemon is not None and catalog_file is None):
        with daemon_access(daemon, tls_dir).open() as client:
            yield client
        return
    if tls_dir is not None:
        raise BadInputError("--tls-dir goes with --daemon HOST:PORT")
    yield planner_in_process(catalog_file, ctrl_c_ends_search=ctrl_c_ends_search)


def planner_in_process(
    catalog_file: Path | None, *, ctrl_c_ends_search: bool = True
) -> "InProcessPlanner":
    """Return the planner of this process."""
    from spotwright.cli.in_process import InProcessPlanner  # noqa: PLC0415

    catalogs = Catalogs(read_config(), file=catalog_file)

    def look(objective: Objective, time_limit_s: float) -> "SearchWatch":
        from spotwright.cli.search_watch import watch_search  # noqa: PLC0415

        return watch_search(objective, time_limit_s, takes_ctrl_c=ctrl_c_ends_search)

    return InProcessPlanner(Jobs(catalogs.of), catalogs, look=look)
