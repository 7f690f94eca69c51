"""Namespaces of the laboratory's own, which end with it.

The laboratory starts itself again as the first process of a new process namespace, in new network
and mount namespaces. Hosts and links exist in there only, so no address of theirs is reachable from
outside, and when the first process ends, by Ctrl-C or kill -9 too, the kernel ends all the others
and takes links and mounts away. What outlives them, CPU groups, the outer process removes.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from spotwright.domain.errors import OutsideWorldError

_TOOLS = {"unshare": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "tc": "iproute2"}
_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


class CannotIsolateError(OutsideWorldError):
    """Nobody may make namespaces here; the text says what to run or install."""


def check_rights() -> None:
    """Raise CannotIsolateError where the laboratory cannot be built."""
    if os.geteuid() != 0:
        raise CannotIsolateError(
            "the laboratory makes network namespaces and CPU groups, which only root may: run "
            "`sudo make lab`, or `sudo .venv/bin/python -m lab`"
        )
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    if missing:
        raise CannotIsolateError(
            f"the laboratory needs {' and '.join(missing)}: `apt-get install {' '.join(missing)}`"
        )
    tried = subprocess.run(
        ["unshare", *_NAMESPACES, "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        raise CannotIsolateError(
            f"this machine lets nobody make namespaces ({tried.stderr.strip()}): run the "
            "laboratory on a host of your own, or in a privileged container"
        )


def run_inside(module: str, arguments: Sequence[str]) -> int:
    """Run a module in namespaces of its own until it ends, and return its exit code."""
    # Whatever ends this process ends that one: the signal goes through all three.
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES]
    with subprocess.Popen([*command, sys.executable, "-m", module, *arguments]) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # the inner process has heard it, too, and tidies up
