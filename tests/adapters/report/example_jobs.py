"""Jobs whose pages are looked at: usual ones, and the extremes of each figure."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from spotwright.domain.job_run import JobRun, JobState, NewEvent, Progress
from spotwright.domain.ledger import LedgerEntry, ProgressMark, RentedPool
from spotwright.domain.planned_run import PlannedNodes, PlannedRun
from spotwright.usecases.job_report import JobReport, report_job
from spotwright.usecases.planned_runs import PlannedRuns
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_fleet import ON_DEMAND, SERVER, SPOT, entry, planned_fleet
from tests.usecases.example_job_run import after, job_run, plan_record

HOUR_S = 3600.0
ELSEWHERE = RentedPool("g4dn.12xlarge", "use1-az1", "spot")


def running() -> JobReport:
    """A long job that lost nodes, fell back, and stands on on-demand in part."""
    lost = [
        happened("interruption-notice", 2.5, "aws will take w2 away", agent_id="w2"),
        happened("interruption-notice", 2.5, "aws will take w3 away", agent_id="w3"),
        happened("agent-silent", 2.55, "agent w3 has sent nothing for 31 s", agent_id="w3"),
        happened(
            "progress-fell-back",
            2.7,
            "training fell back",
            samples="52000",
            reached_samples="54500",
        ),
        happened("fleet-changed", 2.6, "two more workers on demand, until spot is back"),
        happened("interruption-notice", 6.1, "aws will take w0 away", agent_id="w0"),
    ]
    spot = {"w0": (-0.2, 6.15), "w1": (-0.2, 9.0), "w2": (-0.1, 2.53), "w3": (0.3, 2.54),
            "w4": (6.6, 9.0), "w7": (5.6, 9.0)}  # fmt: skip
    entries = [
        *(hours(name, *times) for name, times in spot.items()),
        hours("w5", 2.8, 5.5, pool=ON_DEMAND, price=None),
        hours("w6", 2.8, 9.0, pool=ON_DEMAND, price=None),
        hours("w8", 4.1, 8.2, pool=ELSEWHERE, price=1.4),
        hours("ps", -0.3, 9.0, pool=SERVER, price=0.2),
    ]
    fractions = [(0.0, 0.0), (2.5, 0.31), (3.4, 0.31), (5.5, 0.52), (7.0, 0.70), (8.9, 0.86)]
    return report(
        replace(job_run("resnet50-5f1c"), state=JobState.RUNNING, start_time=after(0),
                progress=Progress(samples=87_000.0), progress_fraction=0.87),
        entries, planned=long_plan(), events=lost, fractions=fractions, at_h=9.0,
    )  # fmt: skip


def ended() -> JobReport:
    """A job that went as planned."""
    entries = [entry(name, -60, 3650) for name in "abcd"]
    server = entry("ps", -60, 3650, pool=SERVER, price=0.2)
    job = replace(job_run(state=JobState.SUCCEEDED), end_time=after(3700), progress_fraction=1.0)
    fractions = [(i / 20, i / 20) for i in range(20)]
    return report(job, [*entries, server], fractions=fractions, at_h=9.0)


def stopped() -> JobReport:
    """A job that was stopped with nothing but an unknown price."""
    job = replace(job_run(state=JobState.STOPPED), end_time=after(600), progress_fraction=None)
    nameless = entry("a", 0, 600, pool=RentedPool("", "", ""), price=None, instance_id="")
    return report(job, [nameless], at_h=1.0)


def pending() -> JobReport:
    """A job of which nothing is known."""
    return report(replace(job_run(), name="a<b & 'c'"), [], at_h=0.1)


def old_daemon() -> JobReport:
    """A report without accounts."""
    return replace(ended(), accounts=None)


def huge() -> JobReport:
    """Hundreds of nodes of many pools that come and go for weeks, for a great deal of money."""
    pools = [
        RentedPool(f"p4d.24xlarge-{i}", f"euw{i}-az{i}", market)
        for i in range(6)
        for market in ("spot", "on-demand")
    ]
    entries = [
        replace(
            hours(f"node-{n}", 3.0 * (n % 97), 3.0 * (n % 97) + 1 + 7 * (n % 41), price=32.77),
            pool=pools[n % len(pools)],
        )
        for n in range(800)
    ]
    events = [happened("interruption-notice", i, "gone", agent_id=f"node-{i}") for i in range(300)]
    job = replace(
        job_run("x" * 60), state=JobState.RUNNING, start_time=after(0), progress_fraction=0.5
    )
    return report(job, entries, events=events, planned=long_plan(), at_h=580.0)


def moment() -> JobReport:
    """A job that has only just begun."""
    job = replace(job_run(), state=JobState.RUNNING, start_time=after(0), progress_fraction=1e-9)
    return report(job, [entry("a", 0, 0.5, price=1e-4)], at_h=0.6 / HOUR_S)


CASES: dict[str, Callable[[], JobReport]] = {
    case.__name__: case for case in (running, ended, stopped, pending, old_daemon, huge, moment)
}


def report(
    job: JobRun,
    entries: Sequence[LedgerEntry],
    *,
    planned: PlannedRun | None = None,
    events: Sequence[NewEvent] = (),
    fractions: Sequence[tuple[float, float]] = (),
    at_h: float,
) -> JobReport:
    store = MemoryJobStore()
    store.add_plan(plan_record())
    store.add_job(job, events)
    marks = [
        ProgressMark(job_id=job.job_id, time=after(at * HOUR_S), fraction=share)
        for at, share in fractions
    ]
    store.write_ledger([replace(row, job_id=job.job_id) for row in entries], marks)
    runs = PlannedRuns(store, lambda _: planned or planned_fleet())
    return report_job(job.job_id, store, runs, now=after(at_h * HOUR_S))


def long_plan() -> PlannedRun:
    """Return a plan of nine hours."""
    duration_s = 9 * HOUR_S
    nodes = planned_fleet().nodes
    more = PlannedNodes(role="worker", pool=ELSEWHERE, node_count=1, price_usd_per_hour=1.4)
    return replace(
        planned_fleet(),
        nodes=(nodes[0], more, nodes[1]),
        duration_s=duration_s,
        cost_usd=(4 * 0.5 + 1.4 + 0.2) * 9,
        deadline_s=12 * HOUR_S,
    )


def hours(
    agent_id: str, from_h: float, to_h: float, *, pool: RentedPool = SPOT, price: float | None = 0.5
) -> LedgerEntry:
    return entry(agent_id, from_h * HOUR_S, to_h * HOUR_S, pool=pool, price=price)


def happened(kind: str, at_h: float, text: str, **facts: str) -> NewEvent:
    return NewEvent(time=after(at_h * HOUR_S), kind=kind, text=text, facts=facts)
