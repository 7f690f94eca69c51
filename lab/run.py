"""One scenario, from its links to the steps that its workers wrote down."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab import roles
from lab.hosts import HostProcess
from lab.laboratory import Laboratory
from lab.roles import PORT, Served, WorkerTask
from lab.scenario import Fault, FaultKind, Scenario, WorkerHost
from spotwright.domain.address import Address
from spotwright.domain.errors import OutsideWorldError
from spotwright.domain.workload import Strategy
from spotwright.train import ServerSettings

_RUNS, _PATIENCE_S = "runs", 120.0
Watch = Callable[[Fault, str], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one worker."""

    ended_s: float  # by the clock that all processes share
    number: int
    step_s: float
    loss: float
    compute_s: float | None
    communication_s: float | None


@dataclass(frozen=True, slots=True)
class Applied:
    """One gradient that a server has counted."""

    at_s: float  # by the same clock
    version: int  # of the parameters after it
    worker: str
    sequence: int  # the worker's own count


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a scenario."""

    began_s: float
    steps: dict[str, tuple[Step, ...]]  # by worker
    served: tuple[Served, ...] = ()
    faults_at_s: tuple[float, ...] = ()
    applied: dict[str, tuple[Applied, ...]] = field(default_factory=dict)  # by server, with faults


def read_applied(path: Path) -> tuple[Applied, ...]:
    """Read what a server wrote down; a line may be cut off where it was killed."""
    found = []
    for line in path.read_text().splitlines():
        cells = line.split(",")
        if len(cells) == 4 and cells[-1]:
            at, version, worker, sequence = cells
            found.append(Applied(float(at), int(version), worker, int(sequence)))
    return tuple(found)


def read_steps(path: Path) -> tuple[Step, ...]:
    """Read what a worker wrote down; its last line may be cut off."""
    steps = []
    for line in path.read_text().splitlines():
        cells = line.split(",")
        if len(cells) == 8:
            at, number, step_s, _samples, loss, _wait, compute_s, communication_s = cells
            steps.append(
                Step(
                    float(at),
                    int(number),
                    float(step_s) if step_s not in ("", "None") else float("nan"),
                    float(loss),
                    float(compute_s) if compute_s else None,
                    float(communication_s) if communication_s else None,
                )
            )
    return tuple(steps)


def steps_told(lab: Laboratory) -> int:
    """Return how many steps workers have written down in all runs so far."""
    return sum(len(read_steps(path)) for path in (lab.folder / _RUNS).glob("*/*.csv"))


def _nobody_watches(_fault: Fault, _host: str) -> None:
    """Do nothing about a fault."""


def run_scenario(
    lab: Laboratory, scenario: Scenario, *, steps: int, seed: int, watch: Watch = _nobody_watches
) -> Outcome:
    """Run until so many updates (rounds, steps of an all-reduce) are made.

    Args:
        lab: where.
        scenario: what.
        steps: how many.
        seed: of jitter.
        watch: told of each fault and host once it has happened.
    """
    set_links(lab, scenario)
    folder = _new_folder(lab, scenario.name)
    if scenario.strategy is Strategy.ALLREDUCE:
        return _run_allreduce(lab, scenario, folder, steps=steps, seed=seed)
    return ServedRun(lab, scenario, folder, steps=steps, seed=seed).run(watch)


def _new_folder(lab: Laboratory, name: str) -> Path:
    """Make a folder for a run; there may have been others of that name."""
    runs = lab.folder / _RUNS
    folder = runs / f"{name}-{len([*runs.glob(f'{name}-*')]) + 1}"
    folder.mkdir(parents=True)
    return folder


def set_links(lab: Laboratory, scenario: Scenario) -> None:
    """Give every link the rate that it has at the beginning."""
    for worker in scenario.workers:
        lab.network.set_rate(worker.name, worker.mbps)
    for name in server_names(scenario):
        lab.network.set_rate(name, scenario.server_mbps)


def server_names(scenario: Scenario) -> list[str]:
    """Return the hosts that hold parameters."""
    return [f"s{i + 1}" for i in range(scenario.server_count)]


def _task(scenario: Scenario, worker: WorkerHost, folder: Path, seed: int) -> WorkerTask:
    return WorkerTask(
        name=worker.name,
        shape=scenario.model,
        device=worker.device,
        batch=scenario.batch,
        seed=1000 * seed + int(worker.name[1:]),
        log=folder / f"{worker.name}.csv",
    )


class ServedRun:
    """A run with parameter servers."""

    def __init__(
        self, lab: Laboratory, scenario: Scenario, folder: Path, *, steps: int, seed: int
    ) -> None:
        self._lab, self._scenario, self._folder = lab, scenario, folder
        self._steps, self._seed = steps, seed
        self._servers: dict[str, HostProcess] = {}
        self._workers: dict[str, HostProcess] = {}
        self._fault_times: list[float] = []

    def run(self, watch: Watch) -> Outcome:
        """Start everybody, let faults happen, and wait for the end."""
        try:
            for index, name in enumerate(server_names(self._scenario)):
                self._servers[name] = self._start_server(index, name)
            for server in self._servers.values():
                server.receive()
            for worker in self._scenario.starters:
                self._start_worker(worker)
            if self._scenario.faults:
                self._until_everybody_steps()
            began_s = time.monotonic()
            self._let_faults_happen(began_s, watch)
            served = tuple(self._ended(server) for server in self._servers.values())
        finally:
            for process in (*self._workers.values(), *self._servers.values()):
                process.kill()
        logs = {w.name: self._log(w.name) for w in self._scenario.workers}
        return Outcome(
            began_s=began_s,
            steps={name: read_steps(path) for name, path in logs.items() if path.exists()},
            served=served,
            faults_at_s=tuple(self._fault_times),
            applied={
                name: read_applied(path)
                for name in self._servers
                if (path := self._log(name)).exists()
            },
        )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.csv"

    def _until_everybody_steps(self) -> None:
        """Wait for each first step: times of faults count from then, however slow a start is.

        Raises:
            OutsideWorldError: somebody makes none.
        """
        waiting = {worker.name for worker in self._scenario.starters}
        end_s = time.monotonic() + _PATIENCE_S
        while waiting:
            waiting = {name for name in waiting if not self._has_stepped(name)}
            if time.monotonic() > end_s:
                raise OutsideWorldError(f"{', '.join(sorted(waiting))} made no step")
            time.sleep(0.02)

    def _has_stepped(self, worker: str) -> bool:
        return self._log(worker).exists() and bool(read_steps(self._log(worker)))

    def _start_server(self, index: int, name: str) -> HostProcess:
        host = self._lab.hosts[name]
        settings = ServerSettings(
            index=index,
            count=self._scenario.server_count,
            strategy=self._scenario.strategy,
            steps=self._steps,
            listen=Address(host.address, PORT),
            tls_dir=self._lab.tls_dir,
            begin_with=len(self._scenario.starters),
            checkpoint=str(self._folder / "checkpoint") if self._scenario.faults else None,
            every=self._scenario.checkpoint_every,
        )
        log = self._log(name) if self._scenario.faults else None
        return HostProcess(host, roles.serve, self._scenario.model, settings, log)

    def _start_worker(self, worker: WorkerHost) -> None:
        task = _task(self._scenario, worker, self._folder, self._seed)
        addresses = [f"{server.host.address}:{PORT}" for server in self._servers.values()]
        host = self._lab.hosts[worker.name]
        self._workers[worker.name] = HostProcess(
            host, roles.work, task, addresses, self._lab.tls_dir
        )

    def _ended(self, server: HostProcess) -> Served:
        served: Served = server.receive(patience_s=600)
        return served

    def _let_faults_happen(self, began_s: float, watch: Watch) -> None:
        for fault in sorted(self._scenario.faults, key=lambda fault: fault.at_s):
            time.sleep(max(0.0, began_s + fault.at_s - time.monotonic()))
            self._fault_times.append(time.monotonic())
            for name in fault.hosts:
                self._happen(fault, name)
            for name in fault.hosts:
                watch(fault, name)

    def _happen(self, fault: Fault, name: str) -> None:
        match fault.kind:
            case FaultKind.KILL:
                (self._workers | self._servers)[name].kill()
            case FaultKind.START:
                self._start_again(name)
            case FaultKind.CUT:
                self._lab.network.cut(name)
            case FaultKind.MEND:
                self._lab.network.mend(name)
            case FaultKind.LINK:
                assert fault.amount is not None
                self._lab.network.set_rate(name, fault.amount)
            case FaultKind.CPUS:
                self._lab.quotas.set(name, fault.amount)

    def _start_again(self, name: str) -> None:
        if name.startswith("s"):
            self._servers[name] = self._start_server(int(name[1:]) - 1, name)
            self._servers[name].receive()
        else:
            [worker] = [w for w in self._scenario.workers if w.name == name]
            self._start_worker(worker)


def _run_allreduce(
    lab: Laboratory, scenario: Scenario, folder: Path, *, steps: int, seed: int
) -> Outcome:
    addresses = [lab.hosts[worker.name].address for worker in scenario.workers]
    processes: list[HostProcess] = []
    began_s = time.monotonic()
    try:
        for rank, worker in enumerate(scenario.workers):
            task = _task(scenario, worker, folder, seed)
            processes.append(
                HostProcess(lab.hosts[worker.name], roles.reduce_all, task, rank, addresses, steps)
            )
        for process in processes:
            process.receive(patience_s=600)
    finally:
        for process in processes:
            process.kill()
    logs = {worker.name: folder / f"{worker.name}.csv" for worker in scenario.workers}
    return Outcome(began_s=began_s, steps={name: read_steps(path) for name, path in logs.items()})
