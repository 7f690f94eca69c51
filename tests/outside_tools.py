"""What a test needs from outside: absent, it is skipped with the reason; in CI it fails instead."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest


def require(condition: object, reason: str) -> None:
    """Go on only if `condition` holds, for example that a folder of shared data is there."""
    if not condition:
        _stop(reason)


def require_tool(name: str) -> Path:
    """Return where a program is."""
    found = shutil.which(name)
    if found is None:
        _stop(f"{name} is not on the PATH")
    return Path(found)


def _stop(reason: str) -> NoReturn:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{reason}, and CI must have it", pytrace=False)
    pytest.skip(reason)
