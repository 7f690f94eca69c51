"""`spotwright-agent`: so far `check`, which tells what the agent could read on this host."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from spotwright_agent.gpu import GpuUnavailableError, read_gpus
from spotwright_agent.network import read_interfaces


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    found = _check()
    try:
        print(json.dumps(found, indent=2) if options.json else _as_text(found), flush=True)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: cannot write the result: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spotwright-agent", description=__doc__)
    parser.add_argument("--version", action="version", version=version("spotwright"))
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="tell what can be read on this host, and what not")
    check.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _check() -> dict[str, Any]:
    interfaces = [asdict(interface) for interface in read_interfaces()]
    try:
        return {"gpus": [asdict(gpu) for gpu in read_gpus()], "gpu_problem": None,
                "interfaces": interfaces}  # fmt: skip
    except GpuUnavailableError as error:
        return {"gpus": [], "gpu_problem": str(error), "interfaces": interfaces}


def _as_text(found: dict[str, Any]) -> str:
    lines = [
        f"GPU {gpu['index']}  {gpu['name']}  {gpu['memory_bytes'] / 2**30:.1f} GiB  "
        f"PCIe {gpu['pcie_generation']}.0 x{gpu['pcie_lane_count']}"
        for gpu in found["gpus"]
    ]
    if found["gpu_problem"]:
        lines.append(f"GPU   not readable: {found['gpu_problem']}")
    for interface in found["interfaces"]:
        speed = interface["speed_mbps"]
        told = f"{speed} Mbit/s" if speed else "speed not told by the driver"
        lines.append(f"NIC   {interface['name']}  {told}")
    return "\n".join(lines or ["nothing readable on this host"])


if __name__ == "__main__":
    sys.exit(main())
