"""What the user's terminal can show. Results go to stdout, everything else to stderr."""

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from spotwright.domain.errors import BadInputError, OutsideWorldError

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 200  # the widest table: a narrow terminal wraps its lines, no figure is cut short
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_plain() -> bool:
    """Tell whether stdout wants text without colours and boxes."""
    # stdout is None where the shell closed it: `>&-`
    return os.environ.get("TERM") == "dumb" or sys.stdout is None or not sys.stdout.isatty()


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(value, indent=None if in_one_line else 2, allow_nan=False), flush=in_one_line)


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


@contextmanager
def complete_output() -> Iterator[None]:
    """Let nothing end well whose result did not arrive whole; a closed pipe ends it silently.

    Raises:
        OutsideWorldError: stdout goes to a disk that is full.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _drop_output()
        raise OutsideWorldError(f"cannot write the result: {error.strerror}") from error


def _drop_output() -> None:
    """Send what stdout still holds nowhere, or the interpreter would fail on it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def refuse_overwriting(output: Path, *inputs: Path | None) -> None:
    """Raise BadInputError where a result would replace a file that it is made from."""
    for path in inputs:
        if path is not None and path.exists() and output.exists() and output.samefile(path):
            raise BadInputError(f"{output} would overwrite what is read; name another file")


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
    unfinished = path.with_name(f".{token_hex(8)}.unfinished")  # two runs may write at once
    try:
        with unfinished.open("x", encoding="utf-8") as file:
            if path.exists():
                shutil.copymode(path, unfinished)
            file.write(text)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
