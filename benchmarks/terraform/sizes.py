"""Seconds to rent, change and give up fleets of 8, 64 and 256 nodes."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
from tests.moto_server import moto_server
from tests.terraform.fleets import Root, fleet, pool, wanted_counts

_HEADER = ("step", "nodes", "seconds", "earlier study")
_STUDY_S = {"create": "10.7", "scale to 64": "4.7", "scale to 256": "6.7"}


def print_sizes(*, quick: bool) -> None:
    """Print one life of a fleet that grows, then fleets made at once."""
    sizes = (8, 64) if quick else (8, 64, 256)
    lines = [*_growing(sizes), *(line for size in sizes for line in _at_once(size))]
    print_table("terraform apply of the module, by number of nodes", _HEADER, lines)


def _variables(node_count: int) -> dict[str, Any]:
    """Return workers in two pools and one parameter server, as the earlier study had them."""
    first = (node_count - 1) // 2
    return fleet(
        pool("g5.xlarge", "use1-az4", first),
        pool("g4dn.xlarge", "use1-az6", node_count - 1 - first),
        pool("m5.xlarge", "use1-az4", 1, role="ps", market="on-demand"),
    )


def _growing(sizes: tuple[int, ...]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder, moto_server() as moto:
        root = Root(Path(folder), moto)
        for size in sizes:
            step = f"scale to {size}" if lines else "create"
            took_s = _applied_s(root, size)
            lines.append((step, str(size), f"{took_s:.1f}", _STUDY_S.get(step, "-")))
        took_s = _timed_s(lambda: _assert_settled(root))
        lines.append(("plan, nothing to do", str(sizes[-1]), f"{took_s:.1f}", "-"))
        took_s = _destroyed_s(root)
        lines.append(("destroy", str(sizes[-1]), f"{took_s:.1f}", "-"))
    return lines


def _at_once(size: int) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder, moto_server() as moto:
        root = Root(Path(folder), moto)
        created_s = _applied_s(root, size)
        destroyed_s = _destroyed_s(root)
    return [
        ("create at once", str(size), f"{created_s:.1f}", "-"),
        ("destroy", str(size), f"{destroyed_s:.1f}", "-"),
    ]


def _applied_s(root: Root, size: int) -> float:
    variables = _variables(size)
    took_s = _timed_s(lambda: root.apply(variables))
    assert root.counts() == wanted_counts(variables)
    return took_s


def _destroyed_s(root: Root) -> float:
    took_s = _timed_s(lambda: root.must("destroy", "-auto-approve", "-input=false"))
    assert root.counts() == {}
    return took_s


def _assert_settled(root: Root) -> None:
    assert root.is_settled()


def _timed_s(action: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    action()
    return time.perf_counter() - started_s
