"""The installed `spotwright` command, run as a user runs it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import pytest

from spotwright.cli.entry import main

SPOTWRIGHT = Path(sys.executable).with_name("spotwright")


def clean_environment(**changes: str) -> dict[str, str]:
    """Return an environment in which nothing of the developer's own settings is left."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {"HOME": "/nonexistent", "TERM": "xterm"} | changes


def spotwright(
    *arguments: str | Path, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    return subprocess.run(
        [SPOTWRIGHT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(**(environment or {})),
    )


def spotwright_here(*arguments: str | Path) -> CompletedProcess[str]:
    """Run the command in this process: no interpreter to start, and every warning is an error."""
    out, told = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["spotwright", *map(str, arguments)]),
        patch.dict(os.environ, clean_environment(), clear=True),
        redirect_stdout(out),
        redirect_stderr(told),
        pytest.raises(SystemExit) as end,
    ):
        main()
    code = end.value.code
    assert isinstance(code, int)
    return CompletedProcess(arguments, code, out.getvalue(), told.getvalue())


def printed_json(*arguments: str | Path) -> Any:
    """Return the JSON a command prints, having checked that it prints nothing else."""
    done = spotwright(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def python(code: str, *arguments: str) -> CompletedProcess[str]:
    """Run code in a new interpreter whose command line is `arguments`."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
