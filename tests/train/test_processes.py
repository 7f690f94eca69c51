"""Servers and workers as processes of their own, some of which are killed."""

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from spotwright.domain.address import Address
from spotwright.domain.workload import Strategy
from spotwright.train import ServerSettings
from spotwright.train.checkpoint import from_bytes
from spotwright.train.roles import ServerRole, WorkerRole
from tests.ports import stable_port
from tests.train.role_process import SCRIPT, RoleProcess, roles, wait_until

EVERY = 10


def server(port: int, folder: Path, *, linger_s: float = 0.0, **settings: object) -> RoleProcess:
    told = {"every": EVERY, "checkpoint": str(folder)} | settings
    chosen = ServerSettings(listen=Address("127.0.0.1", port), **told)  # type: ignore[arg-type]
    return RoleProcess(
        ServerRole(script=f"{SCRIPT}:build", settings=chosen, linger_s=linger_s, threads=1)
    )


def worker(port: int, name: str, build: str = "build") -> RoleProcess:
    where = (f"127.0.0.1:{port}",)
    return RoleProcess(
        WorkerRole(script=f"{SCRIPT}:{build}", servers=where, name=name, batch=8, threads=1)
    )


def saved(folder: Path) -> tuple[int, Sequence[str]]:
    """Return the version of a checkpoint, and who had pushed by then."""
    path = folder / "shard-0-of-1.ckpt"
    if not path.exists():
        return 0, []
    found = from_bytes(path.read_bytes(), place=str(path))
    return found.version, list(found.applied)


@pytest.mark.parametrize("strategy", [Strategy.ASP_PS, Strategy.BSP_PS])
def test_a_server_that_is_killed_goes_on_from_its_checkpoint(
    tmp_path: Path, strategy: Strategy
) -> None:
    port = stable_port()
    with roles() as running:
        first = server(port, tmp_path, steps=150, strategy=strategy, begin_with=2)
        running += [first, *(worker(port, f"w{i}", "build_slow") for i in range(2))]
        wait_until(lambda: saved(tmp_path)[0] > 30 and len(saved(tmp_path)[1]) == 2)
        first.kill()
        kept, _ = saved(tmp_path)
        again = server(port, tmp_path, steps=150, strategy=strategy, begin_with=2)
        running.append(again)
        assert again.wait_for("goes on from") == f"goes on from version {kept} of the checkpoint"
        done, *workers = again.result(), running[1].result(), running[2].result()

    assert (done.resumed_version, done.version, done.saved_version) == (kept, 150, 150)
    assert [one.ended for one in workers] == ["over", "over"]
    assert all(one.reconnects >= 1 for one in workers)
    # What was acknowledged beyond the updates that the end has was lost by the kill.
    of_each_step = 1 if strategy is Strategy.ASP_PS else 2
    lost = sum(one.applied for one in workers) - 150 * of_each_step
    assert lost <= EVERY * of_each_step


def test_workers_that_are_killed_and_join_do_not_stop_training(tmp_path: Path) -> None:
    port = stable_port()
    with roles() as running:
        ps = server(port, tmp_path, steps=400)
        doomed = [worker(port, f"dies{i}", "build_slow") for i in range(2)]
        running += [ps, worker(port, "stays", "build_slow"), *doomed]
        wait_until(lambda: len(saved(tmp_path)[1]) == 3)
        for one in doomed:
            one.kill()
        running.append(worker(port, "joins"))
        done, stays, joins = ps.result(), running[1].result(), running[-1].result()

    assert (done.version, done.is_over, done.workers) == (400, True, 4)
    assert (stays.ended, stays.reconnects, joins.ended) == ("over", 0, "over")
    assert done.last_loss < done.first_loss


def test_a_worker_that_comes_after_the_end_is_told_and_ends_well(tmp_path: Path) -> None:
    port = stable_port()
    with roles() as running:
        running += [server(port, tmp_path, steps=3, linger_s=60.0), worker(port, "w")]
        assert running[1].result().ended == "over"
        late = worker(port, "late")
        running.append(late)
        told = late.wait_for("training ended after 3 updates")
        done = late.result()

    assert "nothing to join" in told
    assert (done.ended, done.steps) == ("late", 0)


def test_a_server_that_is_asked_to_end_saves_what_it_has(tmp_path: Path) -> None:
    port = stable_port()
    with roles() as running:
        ps = server(port, tmp_path, steps=100_000, every=100_000)
        running += [ps, worker(port, "w")]
        ps.wait_for("updates/s")
        ps.process.terminate()
        done = ps.result()

    assert done.saved_version == done.version == saved(tmp_path)[0] > 0
    assert not done.is_over


def test_a_worker_that_is_to_end_waits_for_no_server_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, roles() as running:
        running.append(worker(silent.getsockname()[1], "w"))
        connection, _ = silent.accept()
        with connection:
            running[0].process.terminate()
            done = running[0].result()

    assert (done.ended, done.steps) == ("stopped", 0)


def test_a_worker_that_is_to_end_leaves_when_its_server_dies(tmp_path: Path) -> None:
    port = stable_port()
    with roles() as running:
        ps = server(port, tmp_path, steps=100_000, every=100_000)
        running += [ps, worker(port, "w")]
        ps.wait_for("updates/s")
        ps.kill()
        running[1].process.terminate()
        done = running[1].result()

    assert done.ended == "stopped"
    assert done.steps > 0
