"""How much of a link an exchange with a parameter server uses, beside a bare socket.

Exchange and bare transfer move the same bytes over the same link and take turns, so that both meet
the same machine. The exchange is encrypted and proves who its ends are; the bare socket does not.
"""

import socket
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import torch

from benchmarks.table import Row, print_rows
from lab import roles
from lab.emulated_gpu import Device, ModelShape, emulated_task
from lab.hosts import HostProcess
from lab.roles import PORT
from lab.setting import Setting
from spotwright.domain.address import Address
from spotwright.train import ServerSettings, Worker

_SIZES_MB, _RATES_MBPS = (1, 10, 50), (200.0, 1000.0)
_TARGET_FRACTION = 0.70
_SECONDS, _LEAST_TURNS = 8.0, 8
_BARE_PORT = PORT + 1
_NO_GPU = Device(name="none", fixed_s=0.0, per_sample_s=1e-9, jitter_fraction=0.0)


def measure_throughput(setting: Setting) -> None:
    """An exchange with a parameter server beside the same bytes over a bare socket."""
    rows = []
    for mbps in _RATES_MBPS:
        for megabytes in _SIZES_MB:
            ours_s, bare_s = _take_turns(setting, megabytes, mbps)
            ratio = bare_s / ours_s
            rows.append(
                Row(
                    what=f"{megabytes} MB each way at {mbps:g} Mbit/s",
                    figure=f"{ratio:.2f} ({ours_s * 1e3:.1f} ms, bare {bare_s * 1e3:.1f} ms)",
                    target=f">= {_TARGET_FRACTION:.2f}",
                    is_met=ratio >= _TARGET_FRACTION,
                )
            )
    print_rows("An exchange with a parameter server beside a bare socket", rows)


def _take_turns(setting: Setting, megabytes: int, mbps: float) -> tuple[float, float]:
    """Return the median seconds of an exchange and of a bare transfer."""
    lab = setting.lab
    worker, server = lab.hosts["w1"], lab.hosts["s1"]
    for host in (worker, server):
        lab.network.set_rate(host.name, mbps)
    shape = ModelShape(parameter_bytes=megabytes * 1_000_000, tensor_count=8)
    settings = ServerSettings(listen=Address(server.address, PORT), tls_dir=lab.tls_dir)
    processes = [
        HostProcess(server, roles.serve, shape, settings),
        HostProcess(server, _echo, shape.parameter_bytes, server.address),
    ]
    try:
        for process in processes:
            process.receive()
        asked = HostProcess(worker, _exchange, shape, server.address, lab.tls_dir)
        processes.append(asked)
        found: tuple[float, float] = asked.receive()
    finally:
        for process in processes:
            process.kill()
    return found


def _echo(pipe: Connection, size: int, address: str) -> None:
    room = memoryview(bytearray(size))
    with socket.create_server((address, _BARE_PORT)) as listener:
        pipe.send(True)
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while _receive(connection, room):
            connection.sendall(room)


def _exchange(pipe: Connection, shape: ModelShape, server: str, tls_dir: Path) -> None:
    torch.set_num_threads(1)
    model = emulated_task(shape, _NO_GPU, seed=1).model
    room = memoryview(bytearray(shape.parameter_bytes))
    ours_s: list[float] = []
    bare_s: list[float] = []
    with (
        Worker(model, [f"{server}:{PORT}"], name="w1", tls_dir=tls_dir) as worker,
        socket.create_connection((server, _BARE_PORT)) as bare,
    ):
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end_s = time.perf_counter() + _SECONDS
        while len(ours_s) < _LEAST_TURNS or time.perf_counter() < end_s:
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.grad.fill_(1e-6)
            began_s = time.perf_counter()
            worker.exchange(loss=1.0, batch=1)
            between_s = time.perf_counter()
            bare.sendall(room)
            _receive(bare, room)
            ours_s.append(between_s - began_s)
            bare_s.append(time.perf_counter() - between_s)
    skipped = len(ours_s) // 4  # memory is touched, windows grow
    pipe.send((median(ours_s[skipped:]), median(bare_s[skipped:])))


def _receive(connection: socket.socket, room: memoryview) -> bool:
    while room.nbytes:
        count = connection.recv_into(room)
        if not count:
            return False
        room = room[count:]
    return True
