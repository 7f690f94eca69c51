"""One exchange with a parameter server beside the same bytes over a bare socket.

The rival sends as many bytes and receives as many back, from and into memory that is there already,
all of it in one call, and does nothing with them. Exchanges and rival transfers take turns, so that
both meet the same machine. With root, the same once more on a loopback of its own that lets
1 Gbit/s through.

    python -m benchmarks.train.throughput     prints the figures of this host's loopback as JSON
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from multiprocessing import get_context
from statistics import median
from typing import Any

import torch
from torch import nn

from benchmarks.table import print_table
from spotwright.domain.address import Address
from spotwright.train import ParameterServer, ServerSettings, Worker
from tests.ports import stable_port

SIZES_MB, TARGET, RATE_MBPS = (1, 10, 50), 0.70, 1000
_SECONDS, _LEAST, _MOST = 4.0, 8, 200


class Tensors(nn.Module):
    """A model of so many megabytes, in tensors of at most four."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        count = max(1, megabytes // 4)
        each = megabytes * 1_000_000 // 4 // count
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(each)) for _ in range(count)])


def _serve(megabytes: int, port: int) -> None:
    torch.set_num_threads(1)
    model = Tensors(megabytes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settings = ServerSettings(listen=Address("127.0.0.1", port), expected_workers=1)
    with ParameterServer(model, optimizer, settings=settings) as server:
        server.wait()


def _echo(size: int, port: int) -> None:
    room = memoryview(bytearray(size))
    with socket.create_server(("127.0.0.1", port)) as listener:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while _receive(connection, room):
            connection.sendall(room)


def _receive(connection: socket.socket, room: memoryview) -> bool:
    while room.nbytes:
        count = connection.recv_into(room, 0, socket.MSG_WAITALL)
        if not count:
            return False
        room = room[count:]
    return True


def measure(megabytes: int) -> dict[str, float]:
    """Return median seconds of an exchange and of the rival's transfer, and how many."""
    context, ports = get_context("spawn"), (stable_port(), stable_port())
    processes = [
        context.Process(target=_serve, args=(megabytes, ports[0]), daemon=True),
        context.Process(target=_echo, args=(megabytes * 1_000_000, ports[1]), daemon=True),
    ]
    for process in processes:
        process.start()
    torch.set_num_threads(1)
    model = Tensors(megabytes)
    room = memoryview(bytearray(megabytes * 1_000_000))
    with (
        Worker(model, [f"127.0.0.1:{ports[0]}"], name="w") as worker,
        socket.create_connection(("127.0.0.1", ports[1])) as bare,
    ):
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = _take_turns(model, worker, bare, room)
    for process in processes:
        process.terminate()
        process.join()
    assert model.parts[0][0].item() < 0, "the parameters did not move"
    return found


def _take_turns(
    model: Tensors, worker: Worker, bare: socket.socket, room: memoryview
) -> dict[str, float]:
    ours_s: list[float] = []
    bare_s: list[float] = []
    end_s = time.perf_counter() + _SECONDS
    while len(ours_s) < _LEAST or (time.perf_counter() < end_s and len(ours_s) < _MOST):
        for part in model.parts:
            part.grad.fill_(1.0)
        started_s = time.perf_counter()
        worker.exchange(loss=1.0, batch=1)
        between_s = time.perf_counter()
        bare.sendall(room)
        _receive(bare, room)
        ours_s.append(between_s - started_s)
        bare_s.append(time.perf_counter() - between_s)
    skipped = len(ours_s) // 4  # pages touched for the first time
    return {
        "ours_s": median(ours_s[skipped:]),
        "bare_s": median(bare_s[skipped:]),
        "count": len(ours_s) - skipped,
    }


def print_throughput() -> None:
    """Print a row for each link and size."""
    rows = [_row("loopback", mb, measure(mb)) for mb in SIZES_MB]
    if os.geteuid() == 0 and shutil.which("tc") and shutil.which("unshare"):
        shaped = f"{RATE_MBPS} Mbit/s"
        rows += [_row(shaped, mb, found) for mb, found in zip(SIZES_MB, _shaped(), strict=True)]
    else:
        print("a shaped link needs root, tc and unshare: left out", file=sys.stderr)
    header = ("link", "MB each way", "exchange ms", "bare socket ms", "ratio", "target", "verdict")
    print_table("An exchange beside a bare socket", header, rows)


def _shaped() -> list[dict[str, float]]:
    """Measure on a loopback of its own, which goes away with the process."""
    shape = f"tc qdisc add dev lo root tbf rate {RATE_MBPS}mbit burst 256kb latency 100ms"
    command = f"ip link set lo up mtu 1500 && {shape} && exec {sys.executable} -m {__spec__.name}"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", command], check=True, capture_output=True, text=True
    )
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def _row(link: str, megabytes: int, found: dict[str, Any]) -> tuple[str, ...]:
    ratio = found["bare_s"] / found["ours_s"]
    return (
        link,
        str(megabytes),
        f"{found['ours_s'] * 1e3:.2f}",
        f"{found['bare_s'] * 1e3:.2f}",
        f"{ratio:.2f} ({found['count']} pairs)",
        f">= {TARGET:.2f}",
        "met" if ratio >= TARGET else "missed",
    )


if __name__ == "__main__":
    print(json.dumps([measure(mb) for mb in SIZES_MB]))
