"""Predictions and plans over the wire: how much later than in-process, and beside what else."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.daemon.ingest_cases import LoadCase, against, start_load, told_by
from benchmarks.daemon.served import ServedDaemon
from benchmarks.planner.jobs import ADVERSARIAL, LARGE, loss_job, within
from benchmarks.planner.markets import ONE_REGION
from benchmarks.table import print_table
from spotwright.adapters.jobfile.write import job_text
from spotwright.cli.asking import planner_to_ask
from spotwright.client import Client
from spotwright.domain.questions import JobDocument, PlannedFleet, PlanQuestion
from spotwright.domain.workload import Contention, MemoryUse
from spotwright.usecases.planner_port import Planner

_JOB = Path("examples/resnet50.yaml")
_DOCUMENT = JobDocument(text=_JOB.read_text(), name=str(_JOB))
_FLEET = "g4dn.2xlarge*11@use1-az5/spot"
_CALLS_PER_S = 20.0  # below the 50 that one caller is allowed
_PREDICT_P50_MS, _PREDICT_P99_MS, _OVERHEAD_MS, _GAP_S = 5.0, 25.0, 20.0, 0.1
_ROW = ("figure", "found", "target", "verdict")


def print_predict(*, quick: bool) -> None:
    """Print how long Predict takes, alone and while 1,000 agents send every second."""
    count = 50 if quick else 600
    with _served() as (daemon, client):
        first_ms = _timed_ms(lambda: _predict(client))
        alone = _predictions_ms(client, count)
        case = LoadCase(
            what="1 s batches",
            agents=100 if quick else 1_000,
            batch_s=1.0,
            duration_s=count / _CALLS_PER_S + 5,
            ramp_s=10.0,
        )
        with start_load(daemon, case) as load:
            time.sleep(case.ramp_s + 2.0)
            beside = _predictions_ms(client, count)
            told_by(load)
    lines = [
        ("first of a job ms", f"{first_ms:.1f}", "-", "no target"),
        *_latency_lines("alone", alone),
        *_latency_lines("beside ingest", beside),
    ]
    print_table(f"Predict: {count} calls, {case.agents:,} agents beside", _ROW, lines)


def print_create_plan(*, quick: bool) -> None:
    """Print what the wire adds to a search, and the loop's gaps and Predict beside a long one."""
    rounds = 5 if quick else 20
    with _served() as (_, client), _in_process() as here:
        _plan(client)
        _plan(here)
        far, near = [], []
        for _ in range(rounds):  # in turns, so that both see the same machine
            near.append(_timed_ms(lambda: _plan(here)))
            far.append(_timed_ms(lambda: _plan(client)))
    added_ms = statistics.median(far) - statistics.median(near)
    lines = [
        ("in-process, median ms", f"{statistics.median(near):.0f}", "-", "-"),
        ("over the wire, median ms", f"{statistics.median(far):.0f}", "-", "-"),
        ("added ms", f"{added_ms:.1f}", *against(added_ms, _OVERHEAD_MS)),
    ]
    print_table(f"CreatePlan: {_JOB.stem}, {rounds} times in turns", _ROW, lines)


def print_long_plan(*, quick: bool) -> None:
    """Print whether the loop and Predict notice a search of 30 s."""
    seconds = 5.0 if quick else 30.0
    with _served() as (daemon, client), ThreadPoolExecutor(1) as pool:
        _predict(client)
        long = pool.submit(_plan_for, client, seconds)
        beside = _predictions_ms(client, int((seconds - 2) * _CALLS_PER_S))
        solve_s, gap_s = long.result().plan.solve_s, daemon.loop_gap_s()
    lines = [
        ("search s", f"{solve_s:.1f}", "-", "-"),
        ("loop's longest gap s", f"{gap_s:.3f}", *against(gap_s, _GAP_S)),
        *_latency_lines("beside the search", beside),
    ]
    print_table(f"A search of {seconds:.0f} s", _ROW, lines)


@contextmanager
def _served() -> Iterator[tuple[ServedDaemon, Client]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ServedDaemon(Path(folder)) as daemon,
        Client(daemon.address, tls_dir=daemon.tls_dir, token=daemon.token) as client,
    ):
        _predict(client)  # waits until the workers are warm
        yield daemon, client


@contextmanager
def _in_process() -> Iterator[Planner]:
    with planner_to_ask(daemon=None, tls_dir=None, catalog_file=None) as planner:
        yield planner


def _long_job() -> JobDocument:
    """Return a job that the search does not close in minutes."""
    job = within(loss_job(ADVERSARIAL, LARGE, Contention.QUEUEING), 6 * 3600.0)
    workload = replace(job.workload, memory=MemoryUse(reserved_bytes=1e6))
    limits = replace(job.limits, regions=frozenset(ONE_REGION))
    named = replace(job, name="adversarial", workload=workload, limits=limits)
    return JobDocument(text=job_text({named.name: named}), name="adversarial")


def _predict(planner: Planner) -> None:
    planner.predict(_DOCUMENT, _FLEET)


def _plan(planner: Planner) -> PlannedFleet:
    return _planned(planner, _DOCUMENT, PlanQuestion())


def _plan_for(planner: Planner, seconds: float) -> PlannedFleet:
    return _planned(planner, _long_job(), PlanQuestion(time_limit_s=seconds))


def _planned(planner: Planner, job: JobDocument, question: PlanQuestion) -> PlannedFleet:
    answer = planner.create_plan(job, question)
    if not isinstance(answer, PlannedFleet):
        raise TypeError(f"the example has no plan: {answer}")
    return answer


def _predictions_ms(client: Client, count: int) -> list[float]:
    """Call at an even pace, and return how long each call took."""
    started_s, took = time.monotonic(), []
    for number in range(count):
        time.sleep(max(0.0, started_s + number / _CALLS_PER_S - time.monotonic()))
        took.append(_timed_ms(lambda: _predict(client)))
    return took


def _timed_ms(call: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    call()
    return (time.perf_counter() - started_s) * 1000


def _latency_lines(when: str, took_ms: list[float]) -> list[tuple[str, str, str, str]]:
    p50, p99 = statistics.median(took_ms), sorted(took_ms)[int(len(took_ms) * 0.99)]
    return [
        (f"{when}, p50 ms", f"{p50:.1f}", *against(p50, _PREDICT_P50_MS)),
        (f"{when}, p99 ms", f"{p99:.1f}", *against(p99, _PREDICT_P99_MS)),
    ]
