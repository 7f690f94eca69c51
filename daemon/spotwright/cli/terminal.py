"""What the user's terminal can show. Results go to stdout, everything else to stderr."""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotwright.domain.errors import OutsideWorldError

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 200  # the widest table: a narrow terminal wraps its lines, no figure is cut short


def is_plain() -> bool:
    """Tell whether stdout wants text without colours and boxes."""
    return os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    """Print a table; columns whose name ends in `>` are aligned to the right."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(
        title=title,
        title_justify="left",
        box=None if is_plain() else box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
    )
    for column in columns:
        right = column.endswith(">")
        table.add_column(column.removesuffix(">"), justify="right" if right else "left")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def console() -> "Console":
    """Return a console on stdout that is wide enough for every table."""
    from rich.console import Console  # noqa: PLC0415

    return Console(
        width=max(_WIDTH, shutil.get_terminal_size().columns),
        height=25,  # unused, but without it Rich takes a dumb terminal to be 80 wide
        highlight=False,
        markup=False,
        no_color=True if is_plain() else None,
        emoji=False,
    )


def note(text: str) -> None:
    """Say something on stderr that is not part of the result."""
    print(text, file=sys.stderr)


def write_text(path: Path, text: str) -> None:
    """Write a result file in one step, so that a failure leaves the old one.

    Links are followed, and what is no file, such as /dev/stdout, is written to as it stands.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise OutsideWorldError(f"cannot write {path}: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
