"""How long a controller needs to keep the ledgers of its jobs, and a report to be made of one."""

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from spotwright.adapters.store.sql_store import open_store
from spotwright.domain.job_run import JobState
from spotwright.domain.telemetry import AgentRecord
from spotwright.usecases.account_job import Records, account_job
from spotwright.usecases.keep_ledger import LedgerKeeper
from tests.usecases.example_fleet import entry, node, planned_fleet
from tests.usecases.example_job_run import after, job_run

NODES = 8  # of each job


@pytest.mark.parametrize("job_count", [10, 100, 1_000])
def test_half_a_minute_of_all_ledgers_by_number_of_jobs(
    benchmark: BenchmarkFixture, tmp_path: Path, job_count: int
) -> None:
    jobs = [job_run(f"job-{i:04}", state=JobState.RUNNING) for i in range(job_count)]
    prices, now = planned_fleet().prices_usd_per_hour, [after(0)]
    with closing(open_store(f"sqlite:///{tmp_path}/ledger.db")) as store:
        keeper = LedgerKeeper(store)

        def half_a_minute() -> None:
            """Make the six rounds of half a minute, in which every node is seen all the time."""
            for _ in range(6):
                now[0] += timedelta(seconds=5)
                agents = [_seen(i, now[0]) for i in range(NODES)]
                for job in jobs:
                    keeper.look(job, agents, prices=prices, now=now[0])
                keeper.write()

        benchmark(half_a_minute)

        assert all(len(store.ledger(job.job_id)) == NODES for job in jobs)


@pytest.mark.parametrize("entry_count", [10, 1_000, 10_000])
def test_accounts_by_number_of_entries(benchmark: BenchmarkFixture, entry_count: int) -> None:
    entries = [entry(f"node-{i}", 10 * i, 10 * i + 3600) for i in range(entry_count)]
    job = replace(job_run(state=JobState.SUCCEEDED), end_time=after(10 * entry_count + 3600))

    found = benchmark(account_job, job, planned_fleet(), Records(entries, (), ()), now=after(1e9))

    assert found.spent_usd == pytest.approx(0.5 * entry_count, rel=0.05)


def _seen(number: int, time: datetime) -> AgentRecord:
    return replace(node(f"node-{number}"), last_seen=time)
