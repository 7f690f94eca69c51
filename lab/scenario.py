"""What a scenario says: who trains what, over which links, and what goes wrong when.

    asp-mixed-speeds:
      strategy: asp-ps
      model: {size: 10 MB, tensors: 20}
      batch: 16                       # of each worker
      workers:
        - {count: 2, device: fast, link: 400 Mbit/s}
        - {count: 2, device: slow, link: 200 Mbit/s}
      servers: {count: 1, link: 500 Mbit/s}
      faults:
        - {at: 10s, kill: [w1, w2]}
      checkpoint: 50                  # most updates that a lost server may cost
      steps: 2000                     # until it is over; else as many as take the time asked for

Workers are named w1, w2, ... in the order in which they stand there, servers s1 and s2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from lab.emulated_gpu import Device, ModelShape
from spotwright.domain.errors import BadInputError, SpotwrightError, nearest_name
from spotwright.domain.units import parse_bytes, parse_duration_s, parse_fraction, parse_mbps
from spotwright.domain.workload import Strategy

MOST_WORKERS, MOST_SERVERS = 8, 2
FOLDER = Path(__file__).parent / "scenarios"
DEVICES_FILE = Path(__file__).parent / "devices.yaml"
STRATEGIES = (Strategy.ASP_PS, Strategy.BSP_PS, Strategy.ALLREDUCE)


class FaultKind(StrEnum):
    """What goes wrong."""

    KILL = "kill"  # the process is gone, as with its host
    START = "start"  # a worker that was left out, or was killed, comes (again)
    CUT = "cut"  # the cable is pulled
    MEND = "mend"  # and plugged in again
    LINK = "link"  # the link has another rate from now on
    CPUS = "cpus"  # the host has so many CPUs from now on


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that happens to hosts."""

    at_s: float
    kind: FaultKind
    hosts: tuple[str, ...]
    amount: float | None = None  # Mbit/s, CPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHost:
    """A host that computes."""

    name: str
    device: Device
    mbps: float
    is_late: bool = False  # it comes with a START


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment."""

    name: str
    strategy: Strategy
    model: ModelShape
    batch: int
    workers: tuple[WorkerHost, ...]
    server_count: int
    server_mbps: float
    faults: tuple[Fault, ...] = ()
    checkpoint_every: int = 100
    steps: int | None = None

    @property
    def starters(self) -> tuple[WorkerHost, ...]:
        """The workers that are there from the beginning."""
        return tuple(worker for worker in self.workers if not worker.is_late)


def load_devices(path: Path = DEVICES_FILE) -> dict[str, Device]:
    """Read the devices that there are."""
    found = {}
    for name, told in _mapping(path).items():
        section = _Section(told, f"{path.name}: {name}")
        found[name] = Device(
            name=name,
            fixed_s=parse_duration_s(section.take("fixed")),
            per_sample_s=parse_duration_s(section.take("per_sample")),
            jitter_fraction=parse_fraction(section.take("jitter")),
            on_cpu=bool(section.take("on_cpu", default=False)),
        )
        section.check_empty()
    return found


def load_scenarios(
    folder: Path = FOLDER, *, devices: Mapping[str, Device] | None = None
) -> dict[str, Scenario]:
    """Read all scenarios of a folder, in the order of files and within them.

    Raises:
        BadInputError: a file says something that makes no scenario; the text says where.
    """
    known = load_devices() if devices is None else devices
    found: dict[str, Scenario] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, told in _mapping(path).items():
            where = f"{path.name}: {name}"
            if name in found:
                raise BadInputError(f"{where}: there is another scenario of that name")
            try:
                found[name] = _scenario(name, _Section(told, where), known)
            except SpotwrightError as error:
                text = str(error)
                raise BadInputError(text if where in text else f"{where}: {text}") from error
    if not found:
        raise BadInputError(f"{folder} has no scenario: it needs files that end with .yaml")
    return found


def _scenario(name: str, section: "_Section", devices: Mapping[str, Device]) -> Scenario:
    strategy = _strategy(section.take("strategy"))
    model = _Section(section.take("model"), f"{section.where}: model")
    shape = ModelShape(
        parameter_bytes=round(parse_bytes(model.take("size"))),
        tensor_count=_count(model.take("tensors", default=8), "tensors", least=5),
    )
    model.check_empty()
    batch = _count(section.take("batch"), "batch")
    workers = _workers(section, devices)
    servers = _Section(section.take("servers", default={}), f"{section.where}: servers")
    if strategy.uses_parameter_servers:
        count, mbps = _count(servers.take("count"), "count"), parse_mbps(servers.take("link"))
    else:
        count, mbps = 0, 0.0
    servers.check_empty()
    if count > MOST_SERVERS:
        raise BadInputError(f"{section.where}: {count} servers; there are hosts for {MOST_SERVERS}")
    names = {worker.name for worker in workers} | {f"s{i + 1}" for i in range(count)}
    faults = tuple(
        _fault(_Section(told, f"{section.where}: faults"), names)
        for told in section.take("faults", default=[])
    )
    every = _count(section.take("checkpoint", default=100), "checkpoint")
    steps = _count(section.take("steps"), "steps") if section.has("steps") else None
    section.check_empty()
    return Scenario(
        name=name,
        strategy=strategy,
        model=shape,
        batch=batch,
        workers=workers,
        server_count=count,
        server_mbps=mbps,
        faults=faults,
        checkpoint_every=every,
        steps=steps,
    )


def _workers(section: "_Section", devices: Mapping[str, Device]) -> tuple[WorkerHost, ...]:
    workers: list[WorkerHost] = []
    for told in section.take("workers"):
        group = _Section(told, f"{section.where}: workers")
        device, mbps = str(group.take("device")), parse_mbps(group.take("link"))
        if device not in devices:
            near = nearest_name(device, devices)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(devices)}"
            raise BadInputError(f"{section.where}: there is no device {device!r}; {hint}")
        is_late = bool(group.take("late", default=False))
        for _ in range(_count(group.take("count"), "count")):
            name = f"w{len(workers) + 1}"
            workers.append(
                WorkerHost(name=name, device=devices[device], mbps=mbps, is_late=is_late)
            )
        group.check_empty()
    if len(workers) > MOST_WORKERS:
        raise BadInputError(
            f"{section.where}: {len(workers)} workers; there are hosts for {MOST_WORKERS}"
        )
    if all(worker.is_late for worker in workers):
        raise BadInputError(f"{section.where}: nobody is there at the beginning")
    return tuple(workers)


def _fault(section: "_Section", names: set[str]) -> Fault:
    at_s = parse_duration_s(section.take("at"))
    kinds = [kind for kind in FaultKind if section.has(kind)]
    if len(kinds) != 1:
        raise BadInputError(
            f"{section.where}: one of {', '.join(FaultKind)} is needed, not {kinds}"
        )
    [kind] = kinds
    hosts = tuple(section.take(kind))
    unknown = sorted(set(hosts) - names)
    if unknown:
        raise BadInputError(f"{section.where}: there is no host {', '.join(unknown)}")
    amount = None
    if kind is FaultKind.LINK:
        amount = parse_mbps(section.take("to"))
    elif kind is FaultKind.CPUS:
        amount = float(section.take("to"))
        if not amount > 0:
            raise BadInputError(f"{section.where}: a host needs more than {amount:g} CPUs")
    section.check_empty()
    return Fault(at_s=at_s, kind=kind, hosts=hosts, amount=amount)


class _Section:
    """A mapping of a file that is taken apart, so that what nobody asked for is noticed."""

    def __init__(self, told: object, where: str) -> None:
        if not isinstance(told, dict):
            raise BadInputError(f"{where}: a mapping is needed, not {told!r}")
        self._told, self.where = dict(told), where

    def has(self, name: str) -> bool:
        return name in self._told

    def take(self, name: str, default: Any = None) -> Any:
        if name not in self._told and default is None:
            raise BadInputError(f"{self.where}: {name} is missing")
        return self._told.pop(name, default)

    def check_empty(self) -> None:
        if self._told:
            raise BadInputError(f"{self.where}: nobody knows {', '.join(map(str, self._told))}")


def _mapping(path: Path) -> dict[str, Any]:
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise BadInputError(f"{path} cannot be read: {error}") from error
    if not isinstance(told, dict):
        raise BadInputError(f"{path}: names with scenarios below them are needed")
    return told


def _strategy(told: object) -> Strategy:
    if told not in STRATEGIES:
        raise BadInputError(f"strategy must be one of {', '.join(STRATEGIES)}, got {told!r}")
    return Strategy(str(told))


def _count(told: object, name: str, *, least: int = 1) -> int:
    if not isinstance(told, int) or isinstance(told, bool) or told < least:
        raise BadInputError(f"{name} must be a whole number from {least} on, got {told!r}")
    return told


def chosen(scenarios: Mapping[str, Scenario], names: Sequence[str]) -> list[Scenario]:
    """Return the scenarios of these names or beginnings of names; of none, all.

    Raises:
        BadInputError: no scenario has such a name.
    """
    if not names:
        return list(scenarios.values())
    found: dict[str, Scenario] = {}
    for name in names:
        matching = {n: s for n, s in scenarios.items() if n.startswith(name)}
        if not matching:
            near = nearest_name(name, scenarios)
            hint = f"; did you mean {near!r}?" if near else ""
            raise BadInputError(f"there is no scenario {name!r}{hint}: `python -m lab --list`")
        found |= matching
    return list(found.values())
