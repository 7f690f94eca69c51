"""What exchanging gradients costs a step: the same step alone, beside others, and with them.

    alone     one process, the others wait
    beside    every process of this host, each for itself
    together  the same with gradients averaged (PyTorch DDP; gloo on CPUs, NCCL on GPUs)
    across    one process here and one of another host, gradients averaged

    interconnect stall = together - alone      of it, for sharing the host: beside - alone
    network stall      = across - together     equal numbers of processes

Each process has an equal share of the host's cores, also when it is alone. This module starts the
processes and reads what they found; `exchange_process` is what they do.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path

from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.domain.prediction import Interval

PROCESSES = 2  # of this host on a CPU
_START_S = 90.0  # to import torch, build the model and find each other, on a busy machine
_PATIENCE = 4.0  # times the seconds that were asked for
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one process is told to do."""

    target: str
    data: str | None
    batch: int
    seconds: float
    device: str  # cpu, or cuda: each process then takes the GPU of its rank
    rank: int
    local_count: int
    world_size: int
    rendezvous: str  # a URL of torch.distributed
    threads: int
    interface: str  # that gloo listens on
    found: str | None = None  # where rank 0 writes what it found

    @property
    def patience_s(self) -> float:
        """How long processes wait for each other, and the parent for all of them."""
        return _START_S + _PATIENCE * self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeStalls:
    """Seconds per step; intervals are the range of rounds."""

    alone_s: float
    beside_s: float
    together_s: float
    across_s: float | None  # None: no other host took part
    interconnect_stall_s: Interval
    network_stall_s: Interval | None
    process_count: int
    batch: int


def measure_exchange(
    target: str,
    *,
    data: Path | None,
    batch: int,
    seconds: float,
    device: str,
    local_count: int,
    listen: str | None = None,
) -> ExchangeStalls:
    """Start the processes of this host, wait for another host if told to, and return the stalls.

    Raises:
        OutsideWorldError: a process failed, or they did not find each other in time.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // local_count)
    with tempfile.TemporaryDirectory(prefix="spotwright-profile-") as folder:
        rendezvous = f"tcp://{listen}" if listen else f"file://{folder}/rendezvous"
        orders = [
            Order(
                target=target,
                data=str(data) if data else None,
                batch=batch,
                seconds=seconds,
                device=device,
                rank=rank,
                local_count=local_count,
                world_size=local_count + (1 if listen else 0),
                rendezvous=rendezvous,
                threads=threads,
                interface=interface_of(listen.rpartition(":")[0]) if listen else "lo",
                found=f"{folder}/found.json",
            )
            for rank in range(local_count)
        ]
        _run(orders, Path(folder), orders[0].patience_s)
        found = json.loads(Path(f"{folder}/found.json").read_text())
    return stalls(found, batch=batch, process_count=local_count)


def stalls(found: dict[str, list[float]], *, batch: int, process_count: int) -> ExchangeStalls:
    """Return the stalls of rounds in which each formation was timed once."""
    across = found.get("across")
    return ExchangeStalls(
        alone_s=_median(found["alone"]),
        beside_s=_median(found["beside"]),
        together_s=_median(found["together"]),
        across_s=_median(across) if across else None,
        interconnect_stall_s=_difference(found["together"], found["alone"]),
        network_stall_s=_difference(across, found["together"]) if across else None,
        process_count=process_count,
        batch=batch,
    )


def check_address(flag: str, text: str) -> None:
    """Raise BadInputError where a text is no ADDRESS:PORT with an IPv4 address."""
    address, _, port = text.rpartition(":")
    try:
        IPv4Address(address)
    except ValueError:
        address = ""
    if not address or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInputError(f"{flag}: {text!r} is not ADDRESS:PORT, such as 10.0.0.5:29500")


def interface_of(address: str) -> str:
    """Return the name of the network interface that has an address or leads to it."""
    import fcntl  # noqa: PLC0415 - only where an interface is asked for
    import socket  # noqa: PLC0415
    import struct  # noqa: PLC0415

    siocgifaddr = 0x8915
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # sends nothing
        own = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(probe.fileno(), siocgifaddr, request)
            except OSError:  # an interface without an address
                continue
            if socket.inet_ntoa(answer[20:24]) == own:
                return name
    raise OutsideWorldError(
        f"no network interface of this host has {own}, which leads to {address}"
    )


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[-1 - middle]) / 2


def _difference(longer: Sequence[float], shorter: Sequence[float]) -> Interval:
    kept = [max(a - b, 0.0) for a, b in zip(longer, shorter, strict=True)]
    return Interval(min(kept), _median(kept), max(kept))


def _run(orders: Sequence[Order], folder: Path, seconds: float) -> None:
    processes = [_start(order, folder) for order in orders]
    deadline_s = time.monotonic() + seconds
    try:
        while any(process.poll() is None for process in processes):
            failed = next((i for i, p in enumerate(processes) if p.poll()), None)
            if failed is not None:
                raise OutsideWorldError(
                    f"a process of the exchange failed: {_last(folder, failed)}"
                )
            if time.monotonic() > deadline_s:
                raise OutsideWorldError(f"the exchange did not end within {seconds:.0f} s")
            time.sleep(_POLL_S)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for number, process in enumerate(processes):
        if process.returncode:
            raise OutsideWorldError(f"a process of the exchange failed: {_last(folder, number)}")


def _start(order: Order, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / f"{order.rank}.log").open("wb") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "spotwright.profiler.exchange_process",
                json.dumps(asdict(order)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _last(folder: Path, number: int) -> str:
    """Return the last line that a process said."""
    text = (folder / f"{number}.log").read_text(errors="replace").strip()
    return text.splitlines()[-1] if text else "it said nothing"
