"""What is lost when workers, and the server, are killed."""

import tempfile
from pathlib import Path

from benchmarks.table import Row, print_rows
from benchmarks.train.job_processes import (
    saved_version,
    start_server,
    start_worker,
    wait_for_version,
)
from spotwright.train.checkpoint import from_bytes
from tests.ports import stable_port
from tests.train.role_process import roles

STEPS, EVERY = 3000, 50


def print_losses_of_workers() -> None:
    """Kill five of eight workers, add three, and see what the server has at the end."""
    port = stable_port()
    with tempfile.TemporaryDirectory(prefix="sw") as folder, roles() as running:
        place = Path(folder)
        server = start_server(port, place, steps=STEPS, every=EVERY)
        running.append(server)
        workers = [start_worker(port, f"w{i}") for i in range(8)]
        running.extend(workers)
        wait_for_version(place, STEPS // 4)
        for worker in workers[:5]:
            worker.kill()
        killed_at = saved_version(place)
        wait_for_version(place, min(STEPS, killed_at + 2 * EVERY))
        after = saved_version(place)
        added = [start_worker(port, f"added{i}") for i in range(3)]
        running.extend(added)
        done = server.result()
        acknowledged = {w.worker: w.applied for w in (p.result() for p in workers[5:] + added)}
        applied = _applied(place)
    lost = {w: (n, applied.get(w, 0)) for w, n in acknowledged.items() if applied.get(w, 0) < n}
    print_rows(
        "5 of 8 workers killed at a quarter of the way, 3 added",
        [
            Row(
                what="updates saved between the kill and the first that is added",
                figure=str(after - killed_at),
                target="> 0",
                is_met=after > killed_at,
            ),
            Row(
                what="acknowledged updates of those that stayed or joined, lost",
                figure=f"{len(lost)} of {sum(acknowledged.values())}",
                target="0",
                is_met=not lost,
            ),
            Row(
                what="loss, first and last 50 updates",
                figure=f"{done.first_loss:.3f} to {done.last_loss:.3f}",
                target="falls",
                is_met=done.last_loss < done.first_loss,
            ),
            Row(what="updates", figure=f"{done.version} by {done.workers} workers"),
        ],
    )


def print_loss_of_server() -> None:
    """Kill the server, start it again, and see what its workers had been told and it forgot."""
    port = stable_port()
    with tempfile.TemporaryDirectory(prefix="sw") as folder, roles() as running:
        place = Path(folder)
        first = start_server(port, place, steps=STEPS // 2, every=EVERY)
        workers = [start_worker(port, f"w{i}") for i in range(4)]
        running += [first, *workers]
        wait_for_version(place, STEPS // 8)
        first.kill()
        kept = saved_version(place)
        again = start_server(port, place, steps=STEPS // 2, every=EVERY)
        running.append(again)
        done = again.result()
        acknowledged = sum(worker.result().applied for worker in workers)
    lost = max(0, acknowledged - done.version)
    print_rows(
        "Parameter server killed (SIGKILL) and started again",
        [
            Row(
                what="acknowledged updates lost",
                figure=f"{lost}",
                target=f"<= {EVERY}, one interval",
                is_met=lost <= EVERY,
            ),
            Row(what="went on from", figure=f"version {kept}", is_met=kept == done.resumed_version),
            Row(
                what="reached the end",
                figure=f"version {done.version}",
                target=str(STEPS // 2),
                is_met=done.version == STEPS // 2,
            ),
        ],
    )


def _applied(folder: Path) -> dict[str, int]:
    path = folder / "shard-0-of-1.ckpt"
    return dict(from_bytes(path.read_bytes(), place=str(path)).applied)
