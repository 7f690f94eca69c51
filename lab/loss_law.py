"""Steps to a loss with eight workers, predicted from runs of two and four.

Real asynchronous training of a small network on digits; a host beside it pulls the parameters and
tells their loss on digits that nobody trains on. The law is fitted by what `calibrate --losses`
uses, to the logs of two and four workers. Targets are the losses that four workers have after parts
of their run; `HEADLINE` was chosen before any run of eight. Two ways of setting the learning rate:

    constant   the same for any number of workers
    root       divided by the square root of their number, as in the theory behind sqrt(n) laws
"""

import csv
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean

import torch

from benchmarks.table import Row, print_rows
from lab.digits import digits_task, draw_digits
from lab.emulated_gpu import Device
from lab.hosts import HostProcess
from lab.laboratory import Laboratory
from lab.learned_curve import Curve, Point, predicted_steps
from lab.roles import PORT
from lab.setting import Setting
from spotwright.adapters.measurements.loss_log import REQUIRED, read_loss_log
from spotwright.domain.address import Address
from spotwright.domain.errors import SpotwrightError
from spotwright.train import ParameterServer, ServerSettings, Worker
from spotwright.train.training_loop import TrainingLoop, WorkerResult
from spotwright_agent.training import StepReporter

KNOWN, ASKED = (2, 4), 8
_PARTS, HEADLINE = (0.2, 0.4, 0.6, 0.8), 0.8  # of the run of four workers
_SEEDS = 3
_STEPS, _LONGER = 1200, 1.5  # updates; the asked workers may need more
_BATCH = 64
_RATES: dict[str, Callable[[int], float]] = {
    "constant": lambda _workers: 0.2,
    "root": lambda workers: 0.4 / math.sqrt(workers),
}
_NO_WAIT = Device(name="none", fixed_s=0.0, per_sample_s=1e-9, jitter_fraction=0.0)
_PACE = Device(name="paced", fixed_s=0.025, per_sample_s=1e-9, jitter_fraction=0.1)
_HELD_OUT, _HELD_OUT_SEED, _LOOKS_EVERY_S = 1000, 999_983, 0.05
_TARGET_FRACTION = 0.12
_SERVER, _WATCHER = "s1", "s2"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One training."""

    rule: str
    workers: int
    seed: int

    @property
    def steps(self) -> int:
        return round(_STEPS * (_LONGER if self.workers == ASKED else 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learned:
    """What came of it."""

    points: Sequence[Point]
    staleness: float


def check_loss_law(setting: Setting) -> None:
    """Steps to a loss with eight workers, by a law fitted to runs of two and four."""
    for rule in _RATES:
        seeds = range(setting.options.seed, setting.options.seed + _SEEDS)
        learned = {
            workers: [_train(setting.lab, _Run(rule=rule, workers=workers, seed=s)) for s in seeds]
            for workers in (*KNOWN, ASKED)
        }
        log = setting.options.out / f"loss-law-{rule}.csv"
        write_log(log, {n: [run.points for run in learned[n]] for n in KNOWN})
        write_log(log.with_stem(f"{log.stem}-asked"), {ASKED: [r.points for r in learned[ASKED]]})
        title = f"Steps of {ASKED} workers to a loss, known from 2 and 4; {rule} learning rate"
        print_rows(title, _rows(log, learned))


def write_log(path: Path, runs: Mapping[int, Sequence[Sequence[Point]]]) -> None:
    """Write what `calibrate --losses` reads, of runs by their number of workers."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(REQUIRED)
        for workers, points in ((n, points) for n, own in runs.items() for points in own):
            writer.writerows((f"{step:g}", f"{loss:.6f}", workers, _BATCH) for step, loss in points)


def _rows(log: Path, learned: Mapping[int, Sequence[_Learned]]) -> list[Row]:
    curves = {workers: [Curve(run.points) for run in runs] for workers, runs in learned.items()}
    staleness = mean(run.staleness for run in learned[ASKED])
    return [
        *(_row(log, curves, part, law="cynthia", is_target=True) for part in _PARTS),
        _row(log, curves, HEADLINE, law="spotdnn", is_target=False),
        Row(what=f"updates between pull and push of {ASKED} workers", figure=f"{staleness:.1f}"),
    ]


def _row(
    log: Path, curves: Mapping[int, Sequence[Curve]], part: float, *, law: str, is_target: bool
) -> Row:
    """Hold one target against what eight workers needed; the range is that of seeds."""
    loss = mean(curve.loss_at(part * _STEPS) for curve in curves[KNOWN[-1]])
    headline = "headline, " if part == HEADLINE else ""
    what = f"{headline}loss {loss:.2f} (4 workers at {part:.0%}), {law} law"
    target = f"within {_TARGET_FRACTION:.0%}" if is_target else "-"
    try:
        predicted = predicted_steps(
            read_loss_log(log, asynchronous=True), law=law, loss=loss, workers=ASKED, batch=_BATCH
        )
    except SpotwrightError as error:
        return Row(what=what, figure=str(error), target=target, is_met=False if is_target else None)
    needed = [curve.steps_to(loss) for curve in curves[ASKED]]
    error_fraction = predicted / mean(needed) - 1
    span = f"{min(needed):,.0f} to {max(needed):,.0f}"
    return Row(
        what=what,
        figure=f"{error_fraction:+.1%}: {predicted:,.0f}, needed {mean(needed):,.0f} ({span})",
        target=target,
        is_met=abs(error_fraction) <= _TARGET_FRACTION if is_target else None,
    )


def _train(lab: Laboratory, run: _Run) -> _Learned:
    """Train once, and return what was seen from beside."""
    host = lab.hosts[_SERVER]
    address = f"{host.address}:{PORT}"
    processes = [HostProcess(host, _serve, run, host.address, lab.tls_dir)]
    try:
        processes[0].receive()
        watcher = HostProcess(lab.hosts[_WATCHER], _watch, run, address, lab.tls_dir)
        processes.append(watcher)
        workers = [
            HostProcess(lab.hosts[f"w{number + 1}"], _work, run, number, address, lab.tls_dir)
            for number in range(run.workers)
        ]
        processes += workers
        points: list[Point] = watcher.receive(patience_s=600)
        results: list[WorkerResult] = [worker.receive() for worker in workers]
    finally:
        for process in processes:
            process.kill()
    return _Learned(
        points=points, staleness=mean(result.mean_staleness or 0.0 for result in results)
    )


def _serve(pipe: Connection, run: _Run, address: str, tls_dir: Path) -> None:
    torch.set_num_threads(1)
    rate = _RATES[run.rule](run.workers)
    task = digits_task(_NO_WAIT, learning_rate=rate, seed=run.seed)
    settings = ServerSettings(steps=run.steps, listen=Address(address, PORT), tls_dir=tls_dir)
    with ParameterServer(task.model, task.optimizer, settings=settings) as server:
        pipe.send(True)
        server.wait()


def _work(pipe: Connection, run: _Run, number: int, server: str, tls_dir: Path) -> None:
    torch.set_num_threads(1)
    pace_seed = 1000 * run.seed + number
    task = digits_task(
        _PACE, learning_rate=1.0, seed=run.seed, pace_seed=pace_seed
    )  # not used here
    reporter = StepReporter(rank=number)
    worker = Worker(task.model, [server], name=f"w{number + 1}", tls_dir=tls_dir)
    loop = TrainingLoop(task, worker, batch=_BATCH, reporter=reporter)
    try:
        with worker:
            pipe.send(loop.run())
    finally:
        reporter.close()


def _watch(pipe: Connection, run: _Run, server: str, tls_dir: Path) -> None:
    """Send the loss on digits that nobody trains on, from the first update to the last."""
    torch.set_num_threads(1)
    task = digits_task(_NO_WAIT, learning_rate=1.0, seed=run.seed)
    inputs, targets = draw_digits(_HELD_OUT, torch.Generator().manual_seed(_HELD_OUT_SEED))
    points: list[Point] = []
    version = 0
    with Worker(task.model, [server], name="watcher", tls_dir=tls_dir) as watcher:
        while version < run.steps:
            version = watcher.pull()
            if version and (not points or version > points[-1][0]):
                with torch.no_grad():
                    points.append((version, float(task.loss(task.model(inputs), targets))))
            time.sleep(_LOOKS_EVERY_S)
    pipe.send(points)
