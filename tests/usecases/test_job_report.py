from dataclasses import replace
from typing import Any

import pytest

from spotwright.domain.job_run import JobRun, JobState, Progress
from spotwright.domain.ledger import LedgerEntry
from spotwright.domain.telemetry import RollupPart, Statistic
from spotwright.usecases.job_report import Measured, report_job, report_lines
from spotwright.usecases.planned_runs import PlannedRuns
from spotwright.usecases.report_progress import ProgressLog
from tests.fakes.memory_job_store import MemoryJobStore
from tests.usecases.example_fleet import ON_DEMAND, entry, planned_fleet
from tests.usecases.example_job_run import (
    START,
    after,
    agent_record,
    job_run,
    plan_record,
    planned_run,
)

RUNNING = replace(
    job_run(state=JobState.RUNNING), progress=Progress(samples=25_000.0), progress_fraction=0.25
)


def figures(job: JobRun, *, at_s: float) -> dict[str, tuple[Any, Any]]:
    lines = report_lines(job, planned_run(), Measured(), now=after(at_s))
    return {line.figure: (line.planned, line.measured) for line in lines}


def test_a_running_job_is_expected_to_go_on_as_it_did() -> None:
    found = figures(RUNNING, at_s=1800.0)

    assert found["elapsed_s"] == (None, 1800.0)
    assert found["duration_s"] == (3600.0, pytest.approx(7200.0))
    assert found["cost_so_far_usd"] == (None, pytest.approx(1.80))
    assert found["cost_usd"] == (3.60, pytest.approx(7.20))
    assert found["samples_per_s"] == (27.8, pytest.approx(25_000 / 1800))
    assert found["progress_fraction"] == (pytest.approx(0.5), 0.25)


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.STOPPED])
def test_a_job_that_ended_took_as_long_as_it_took(state: JobState) -> None:
    ended = replace(RUNNING, state=state, end_time=after(4000))

    assert figures(ended, at_s=99_999.0)["duration_s"] == (3600.0, 4000.0)
    assert figures(ended, at_s=99_999.0)["cost_usd"] == (3.60, pytest.approx(4.0))


def test_nothing_is_measured_before_the_first_progress() -> None:
    assert all(measured is None for _, measured in figures(job_run(), at_s=60.0).values())


def test_a_share_that_cannot_be_told_gives_no_forecast() -> None:
    found = figures(replace(RUNNING, progress_fraction=None), at_s=1800.0)

    assert found["duration_s"] == (3600.0, None)
    assert found["cost_so_far_usd"] == (None, pytest.approx(1.80))


def test_a_fleet_without_a_price_has_no_measured_cost() -> None:
    unpriced = replace(planned_run(), rent_usd_per_hour=None)

    lines = report_lines(RUNNING, unpriced, Measured(), now=after(1800))

    assert {line.measured for line in lines if "usd" in line.figure} == {None}


def test_the_step_is_the_mean_over_all_agents_of_the_job() -> None:
    store = MemoryJobStore()
    store.add_plan(plan_record())
    store.add_job(RUNNING, [])
    for agent_id, step_count, total_s in (("a", 10, 30.0), ("b", 30, 150.0)):
        store.agent_records[agent_id] = agent_record(agent_id)
        part = RollupPart(
            start_unix_s=int(START.timestamp()),
            step_count=step_count,
            statistics={"step_s": Statistic(step_count, total_s, 9.0)},
        )
        store.rollup_parts[agent_id] = [part]

    report = report_job(
        RUNNING.job_id, store, PlannedRuns(store, lambda _: planned_run()), now=after(60)
    )

    (step,) = [line for line in report.lines if line.figure == "step_s"]
    assert step.planned == 3.6
    assert step.measured == pytest.approx(180 / 40)


def reported(*entries: LedgerEntry, at_s: float = 1800.0) -> dict[str, float | None]:
    store = MemoryJobStore()
    store.add_plan(plan_record())
    told = ProgressLog(store, PlannedRuns(store, lambda _: planned_fleet()))
    store.add_job(job_run(), [])
    for when_s, samples in ((0, 0.0), (900, 20_000.0), (910, 15_000.0), (1790, 25_000.0)):
        told.report("resnet-1", Progress(samples=samples), request_id="", now=after(when_s))
    store.write_ledger(entries)
    runs = PlannedRuns(store, lambda _: planned_fleet())
    report = report_job("resnet-1", store, runs, now=after(at_s))
    return {line.figure: line.measured for line in report.lines}


def test_costs_are_those_of_the_ledger_and_go_on_as_they_did_since_the_start() -> None:
    # Half an hour of start-up and half an hour of training on two nodes at $0.50, a quarter done.
    found = reported(entry("a", -1800, 1800), entry("b", -1800, 1800))

    assert found["cost_so_far_usd"] == pytest.approx(1.0)
    assert found["duration_s"] == pytest.approx(7200.0)
    assert found["cost_usd"] == pytest.approx(1.0 + 1.0 * 1.5)


def test_lost_work_cost_its_share_of_all_work_since_the_start() -> None:
    # 5 % of the goal was lost, 25 % is reached: a sixth of half an hour and of half a dollar.
    found = reported(entry("a", -1800, 1800), entry("b", 900, 1800))

    assert found["lost_work_s"] == pytest.approx(300.0)
    assert found["lost_work_cost_usd"] == pytest.approx((0.25 + 0.125) / 6)


def test_a_bill_with_an_unknown_price_is_not_told() -> None:
    found = reported(entry("a", 0, 1800), entry("b", 0, 1800, pool=ON_DEMAND, price=None))

    assert found["cost_so_far_usd"] is found["cost_usd"] is found["lost_work_cost_usd"] is None
    assert found["lost_work_s"] == pytest.approx(300.0)


def test_without_a_ledger_costs_are_the_rent_of_the_planned_fleet() -> None:
    assert reported()["cost_so_far_usd"] == pytest.approx(2.2 / 2)
