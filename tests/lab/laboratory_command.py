"""The laboratory as people call it, and what it must not leave behind."""

import subprocess
import sys
from pathlib import Path

from lab.enclave import CannotIsolateError, check_rights
from tests.outside_tools import require

COMMAND = [sys.executable, "-m", "lab"]
ROOT = Path(__file__).parents[2]


def run_lab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def require_rights() -> None:
    try:
        check_rights()
    except CannotIsolateError as error:
        require(False, str(error))


def left_behind() -> list[str]:
    """Return what laboratories that have ended left: another one may be at work meanwhile."""
    groups = [
        str(path)
        for path in Path("/sys/fs/cgroup").glob("**/spotwright-lab-*")
        if not Path("/proc", path.name.removeprefix("spotwright-lab-")).exists()
    ]
    return groups + [str(path) for path in Path("/run/netns").glob("[ws][0-9]")]
