"""What `spotwright train` does with its flags: one role, or all of them here."""

import os
from dataclasses import asdict, replace
from typing import Any

from spotwright.cli.terminal import note, print_json
from spotwright.cli.train_flags import Role, TrainFlags
from spotwright.cli.training_plan import RolePlan, role_plan
from spotwright.domain.address import Address
from spotwright.train.parameter_server import ServerSettings
from spotwright.train.rehearsal import rehearse
from spotwright.train.roles import (
    ServerResult,
    ServerRole,
    WorkerRole,
    run_server,
    run_worker,
)
from spotwright.train.training_loop import WorkerResult

_USUAL_BATCH = 32
_HERE = Address("127.0.0.1", 0)


def train_roles(flags: TrainFlags) -> None:
    """Run what was asked for, and tell what came of it."""
    plan = role_plan(flags)
    if flags.role is Role.WORKER:
        worker = _worker(flags, flags.name, batch=_batch(flags, plan))
        _tell_worker(run_worker(worker, tell=note), flags)
    elif flags.role is Role.PS:
        role = _server(flags, plan, index=flags.index)
        _tell_server(run_server(role, tell=note, listens=_listening), flags)
    else:
        _rehearse(flags, plan)


def _batch(flags: TrainFlags, plan: RolePlan) -> int:
    return flags.batch or plan.batch or _USUAL_BATCH


def _rehearse(flags: TrainFlags, plan: RolePlan) -> None:
    flags = replace(flags, threads=flags.threads or _threads_of_each(plan))
    batch = _batch(flags, plan)
    note(
        f"{plan.servers} parameter servers and {plan.workers} workers, {plan.strategy}, "
        f"batches of {batch}, "
        f"{'for ever' if plan.steps is None else f'{plan.steps} steps'}, all on this machine, "
        f"PyTorch's threads of each: {flags.threads}"
    )
    servers = [_server(flags, plan, index=index) for index in range(plan.servers)]
    workers = [
        _worker(flags, f"w{index}", batch=batch, rank=index) for index in range(plan.workers)
    ]
    done = rehearse(servers, workers, tell=note)
    if flags.as_json:
        print_json(
            {
                "strategy": plan.strategy,
                "servers": [asdict(result) for result in done.servers],
                "workers": [asdict(result) for result in done.workers],
            }
        )
        return
    for server in done.servers:
        print(_server_line(server))
    for worker in done.workers:
        print(_worker_line(worker))


def _threads_of_each(plan: RolePlan) -> int:
    """Return a process's share of this machine's cores: threads beyond it wait for each other."""
    return max(1, len(os.sched_getaffinity(0)) // (plan.servers + plan.workers))


def _server(flags: TrainFlags, plan: RolePlan, *, index: int) -> ServerRole:
    return ServerRole(
        script=flags.script,
        settings=ServerSettings(
            index=index,
            count=plan.servers,
            strategy=plan.strategy,
            steps=plan.steps,
            listen=Address.parse(flags.listen) if flags.listen else _HERE,
            tls_dir=flags.tls_dir,
            checkpoint=flags.checkpoint,
            every=flags.every,
            begin_with=plan.workers,
            expected_workers=plan.workers,
        ),
        linger_s=flags.linger_s,
        threads=flags.threads,
    )


def _worker(
    flags: TrainFlags, name: str | None, *, batch: int, rank: int | None = None
) -> WorkerRole:
    return WorkerRole(
        script=flags.script,
        servers=flags.server_addresses or (),
        name=name,
        batch=batch,
        tls_dir=flags.tls_dir,
        rank=rank,
        threads=flags.threads,
    )


def _listening(address: Address) -> None:
    note(f"listening on {address}")


def _tell_server(result: ServerResult, flags: TrainFlags) -> None:
    _tell(result, _server_line(result), as_json=flags.as_json)


def _tell_worker(result: WorkerResult, flags: TrainFlags) -> None:
    _tell(result, _worker_line(result), as_json=flags.as_json)


def _tell(result: Any, line: str, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(result))
    else:
        print(line)


def _server_line(result: ServerResult) -> str:
    loss = ""
    if result.first_loss is not None and result.last_loss is not None:
        loss = f", loss {result.first_loss:.4g} to {result.last_loss:.4g}"
    saved = "" if result.saved_version is None else f", saved at {result.saved_version}"
    return (
        f"server {result.index}: version {result.version} after {result.updates} updates of "
        f"{result.workers} workers{loss}, staleness {result.mean_staleness or 0:.1f} on average, "
        f"{result.max_staleness} at most{saved}"
    )


def _worker_line(result: WorkerResult) -> str:
    return (
        f"worker {result.worker}: {result.steps} steps, {result.samples} samples, "
        f"{result.applied} applied, {result.reconnects} reconnects, {result.ended}"
    )
